"""How jobs of Python loops begin: by launchers that MPI knows, and not by others."""
import re
import subprocess
import sys
import unittest

from support import JobCase, needs_mpi4py, needs_torch

LOOP = """
    import sys
    if "mpi4py" in sys.argv: from mpi4py import MPI
    import numpy as np, hearsay
    report = {"directory": "run", "overwrite": True}
    member = hearsay.join({"exchange": {"name": "dpsgd"}, "report": report}, [np.zeros(9, np.float32)])
    with member.step(): pass
    print("ranks:", member.ranks)
"""
TORCHRUN = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29512"}


class LaunchTest(JobCase):
    def refused(self, words, *arguments, environment):
        job = self.job(LOOP, *arguments, ranks=None, environment=environment)
        self.assertEqual(job.code, 2, job)
        self.assertRegex(job.err, words)
        self.assertNotIn("Traceback", job.err)
        self.assertFalse((self.folder / "run").exists(), "something was written")

    def test_a_launcher_that_mpi_does_not_know_is_refused(self):
        commands = r"`mpirun -n 2 python3\S* …` or `python3 -m hearsay launch -n 2 …`"
        self.refused(rf"^hearsay: .*program.py:6: torchrun .*RANK=1.* alone\. .*{commands}", environment=TORCHRUN)
        slurm = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}
        self.refused(r"srun has started 2 .*`srun --mpi=pmix -n 2 python3", environment=slurm)
        first_pod = {"JOB_COMPLETION_INDEX": "0"}
        self.refused("Kubernetes has started several .*INDEX=0.*`mpirun -n 1 …` starts a single", environment=first_pod)

    @needs_mpi4py
    def test_nor_where_mpi4py_has_started_mpi(self):
        self.refused("torchrun .* has started 2 processes", "mpi4py", environment=TORCHRUN)

    @needs_torch
    def test_nor_where_torch_distributed_was_told_by_a_function(self):
        program = self.folder / "program.py"
        program.write_text(
            "import sys, torch, numpy as np, hearsay\n"
            f"torch.distributed.init_process_group('gloo', init_method='file://{self.folder}/store',\n"
            "                                     rank=int(sys.argv[1]), world_size=2)\n"
            "hearsay.join({'exchange': {'name': 'dpsgd'}}, [np.zeros(9, np.float32)])\n"
        )
        words = [sys.executable, str(program)]
        with subprocess.Popen([*words, "1"], cwd=self.folder, stderr=subprocess.DEVNULL) as other:
            job = self.command(*words, "0")
            self.assertEqual((job.code, other.wait(30)), (2, 2), job)
        self.assertIn("torch.distributed has 2 processes, but MPI knows of this one only", job.err)
        self.assertIn("`python3 -m hearsay launch -n 2 …`", job.err)

    def test_one_process_that_mpirun_was_asked_for(self):
        for around in (TORCHRUN, {"JOB_COMPLETION_INDEX": "0"}):
            self.assertIn("ranks: 1", self.good_job(LOOP, ranks=1, environment=around).out)

    def test_python_launches(self):
        launch = [sys.executable, "-m", "hearsay", "launch"]
        (self.folder / "program.py").write_text(
            "import hearsay, os, sys; os.write(1, f'rank {hearsay.rank()}: {sys.argv[1:]}\\n'.encode())\n"
        )
        job = self.command(*launch, "--tag-output", "-n", "2", "program.py", "-n", "9")
        self.assertEqual(job.code, 0, job)
        said = re.sub(r"\[\d+,\d+\]<stdout>:", "", job.out)  # Open MPI may tag the parts of a line
        self.assertIn("<stdout>", job.out, "an option of mpirun")
        for rank in range(2):
            self.assertIn(f"rank {rank}: ['-n', '9']\n", said)
        for words, said in (([], "Usage"), (["-n", "two", "x.py"], "'two'"), (["x.py"], "how many"),
                            (["-n", "2", "--tag-output", "x.py"], "options of mpirun come before -n")):
            job = self.command(*launch, *words)
            self.assertEqual(job.code, 2, job)
            self.assertIn(said, job.out + job.err)


if __name__ == "__main__":
    unittest.main()
