"""How jobs of Python loops begin: by launchers that MPI knows, by others without MPI, and not at all."""
import re
import subprocess
import sys
import textwrap
import unittest

from hearsay import _launch
from hearsay.errors import ConfigError
from support import MPIRUN, JobCase, needs_mpi4py, needs_torch

LOOP = """
    import sys
    if "mpi4py" in sys.argv: from mpi4py import MPI
    import numpy as np, hearsay
    report = {"directory": "run", "overwrite": True}
    member = hearsay.join({"exchange": {"name": "dpsgd"}, "report": report}, [np.zeros(9, np.float32)])
    with member.step(): pass
    print(f"ranks: {member.ranks}")
"""
TORCHRUN = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29512"}


class LaunchTest(JobCase):
    def refused(self, words, *arguments, environment):
        job = self.job(LOOP, *arguments, ranks=None, environment=environment)
        self.assertEqual(job.code, 2, job)
        self.assertRegex(job.err, words)
        self.assertNotIn("Traceback", job.err)
        self.assertFalse((self.folder / "run").exists(), "something was written")

    def test_launchers_without_mpi(self):
        """Each starts one job of two, with the bits of mpirun's."""
        loop = LOOP + """
    for _ in range(5):
        with member.step():
            for g in member.gradients.values(): g[:] = member.rank + 1
        for x, g in zip(member.parameters.values(), member.gradients.values()): x -= 0.5 * g
    import os; os.write(1, f"hash {member._core.replica_hash}\\n".encode())
        """
        expected = sorted(re.findall(r"hash \d+", self.good_job(loop, ranks=2).out))
        self.assertEqual(len(set(expected)), 2)
        for environments in (
            [{**TORCHRUN, "RANK": rank, "LOCAL_RANK": rank} for rank in "01"],
            [{"HEARSAY_RANK": rank, "HEARSAY_RANKS": "2"} for rank in "01"],
            [{"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_PROCID": rank} for rank in "01"],
        ):
            with self.subTest(environments):
                jobs = self.processes(loop, environments)
                self.assertEqual([job.code for job in jobs], [0, 0], "\n".join(map(str, jobs)))
                out = "".join(job.out for job in jobs)
                self.assertEqual(out.count("ranks: 2"), 2)
                self.assertEqual(sorted(re.findall(r"hash \d+", out)), expected)

    @needs_torch
    def test_on_several_hosts_they_meet_in_the_store_of_torchrun(self):
        """Its agent has one; here another process has it."""
        agent = "import torch.distributed as d; s = d.TCPStore('127.0.0.1', 0, is_master=True)"
        words = [sys.executable, "-c", agent + "; print(s.port, flush=True); input()"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(words, **pipes) as store:
            anywhere = {**TORCHRUN, "MASTER_ADDR": "0.0.0.0", "MASTER_PORT": store.stdout.readline().strip(),
                        "TORCHELASTIC_USE_AGENT_STORE": "True"}
            jobs = self.processes(LOOP, [{**anywhere, "RANK": rank, "LOCAL_RANK": "0"} for rank in "01"])
            store.communicate("\n")
        self.assertEqual([job.code for job in jobs], [0, 0], "\n".join(map(str, jobs)))
        self.assertEqual("".join(job.out for job in jobs).count("ranks: 2"), 2)

    def test_a_rank_that_fails_or_leaves_without_mpi_ends_the_others_by_name(self):
        pair = [{"HEARSAY_RANK": rank, "HEARSAY_RANKS": "2"} for rank in "01"]
        fails = "    if member.rank == 1: raise ValueError('of rank 1')\n    member.summary()"
        jobs = self.processes(LOOP + fails, pair)
        self.assertEqual([job.code for job in jobs], [1, 1], "\n".join(map(str, jobs)))
        self.assertIn("[rank 0] rank 1 has ended the job", jobs[0].err)
        jobs = self.processes(LOOP + "    if member.rank == 1: sys.exit()\n    member.evaluate(lambda m: 0.0)", pair)
        self.assertNotEqual(jobs[0].code, 0, jobs[0])
        self.assertIn("rank 1 is at the program's end", jobs[0].err)

    def test_a_launcher_that_says_too_little_is_refused(self):
        self.refused(
            r"^hearsay: .*program.py:6: torchrun .* 2 processes that may be on several hosts.*HEARSAY_RENDEZVOUS",
            environment={**TORCHRUN, "MASTER_ADDR": "10.0.0.1"},
        )
        slurm = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}
        self.refused("srun has started 2 processes that may be on several hosts", environment=slurm)
        first_pod = {"JOB_COMPLETION_INDEX": "0"}
        self.refused("Kubernetes has started several .*INDEX=0.*`mpirun -n 1 …` starts a single", environment=first_pod)

    @needs_mpi4py
    def test_nor_does_mpi4py_help(self):
        elsewhere = {**TORCHRUN, "MASTER_ADDR": "10.0.0.1"}
        self.refused("torchrun .* has started 2 processes", "mpi4py", environment=elsewhere)

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
        self.assertIn("torch.distributed has 2 processes, but no launcher says so", job.err)
        self.assertIn("`python3 -m hearsay launch -n 2 …`", job.err)
        said = re.search(r"os\.environ\.update\(RANK='0', WORLD_SIZE='2'\)", job.err)
        self.assertIsNotNone(said, job)
        program.write_text(program.read_text().replace("hearsay.join(", (
            "import os; " + said[0].replace("'0'", "sys.argv[1]") + "\nprint('ranks:', hearsay.size())\nhearsay.join("
        )).replace("/store", "/other"))
        with subprocess.Popen([*words, "1"], cwd=self.folder, stderr=subprocess.DEVNULL) as other:
            job = self.command(*words, "0")
            self.assertEqual((job.code, other.wait(30)), (0, 0), job)
        self.assertIn("ranks: 2", job.out)

    def test_one_process_that_mpirun_was_asked_for(self):
        for around in (TORCHRUN, {"JOB_COMPLETION_INDEX": "0"}):
            self.assertIn("ranks: 1", self.good_job(LOOP, ranks=1, environment=around).out)

    def of_two(self, *command, environment=None):
        (self.folder / "program.py").write_text(textwrap.dedent(LOOP))
        job = self.command(*command, environment={"TMPDIR": str(self.folder), **(environment or {})})
        self.assertEqual(job.code, 0, job)
        self.assertEqual(job.out.count("ranks: 2"), 2, job)

    def test_what_one_process_of_mpirun_launches(self):
        """The inner launcher's numbers count, here a shell's."""
        each = f"{{}} {sys.executable} program.py &"
        torchrun = "RANK={0} LOCAL_RANK={0} WORLD_SIZE=2 MASTER_ADDR=127.0.0.1"
        for variables in (torchrun, "HEARSAY_RANK={0} HEARSAY_RANKS=2"):
            loop = " ".join(each.format(variables.format(rank)) for rank in range(2)) + " wait"
            self.of_two(*MPIRUN, "-n", "1", "sh", "-c", loop)
            self.of_two("sh", "-c", loop, environment={"PMI_RANK": "0", "PMI_SIZE": "3"})  # as of srun

    @needs_torch
    def test_torchrun_inside_of_mpirun(self):
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--master_port", "29517", "--nproc_per_node"]
        if self.command(*torchrun, "1", "--no_python", "true").code != 0:
            self.skipTest("torch's own launcher does not start on this Python (torch 1.13 with Python 3.11)")
        self.of_two(*MPIRUN, "-n", "1", *torchrun, "2", "program.py")

    def test_launchers_that_contradict_each_other_are_refused(self):
        alone = {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}
        works = "torchrun .* cannot be seen.* `env -u WORLD_SIZE -u RANK PROGRAM …` is alone"
        self.refused(works, environment={**TORCHRUN, **alone})
        lightning = {**TORCHRUN, "RANK": None, "NODE_RANK": "1"}
        self.refused("NODE_RANK=1, LOCAL_RANK=1: .*LOCAL_WORLD_SIZE", environment=lightning)

    def test_what_a_rank_starts_is_told_that_it_is_none(self):
        """With the environment as it is, and as Python has it; a launcher of its own makes it a job of its own."""
        loop = LOOP + """
    import os, subprocess
    if "child" in os.environ: sys.exit()
    os.environ["child"] = "yes"
    child = [sys.executable, sys.argv[0]]
    launch = [sys.executable, "-m", "hearsay", "launch", "--without-mpi", "-n", "1"]
    for command, environment in ((child, None), (child, dict(os.environ)), ([*launch, *child], None)):
        options = {"capture_output": True, "text": True, "cwd": f"of{member.rank}", "timeout": 60}
        done = subprocess.run(command, env=environment, **options)
        os.write(1, f"child: {done.returncode} {done.stdout} {done.stderr}\\n".encode())
        """
        for rank in range(2):
            (self.folder / f"of{rank}").mkdir()
        for start in ("mpirun", "loop"):
            with self.subTest(start):
                if start == "mpirun":
                    out = self.good_job(loop, ranks=2).out
                else:
                    jobs = self.processes(loop, [{"HEARSAY_RANK": rank, "HEARSAY_RANKS": "2"} for rank in "01"])
                    self.assertEqual([job.code for job in jobs], [0, 0], "\n".join(map(str, jobs)))
                    out = "".join(job.out for job in jobs)
                told = re.findall(r"child: 2  hearsay: .*a rank of a job, has started this one", out)
                self.assertEqual(len(told), 4, out)
                self.assertEqual(len(re.findall(r"child: 0 ranks: 1", out)), 2, out)

    def test_who_is_missing_is_told_without_mpi(self):
        """A rank that never asks Hearsay, and one that never joins."""
        program = """
            import sys, os, time, numpy as np, hearsay
            if os.environ["HEARSAY_RANK"] == "1": CALL; time.sleep(30); sys.exit()
            hearsay.join({"exchange": {"name": "dpsgd"}}, [np.zeros(9, np.float32)])
        """
        pair = [{"HEARSAY_RANK": rank, "HEARSAY_RANKS": "2", "HEARSAY_START_TIMEOUT": "12"} for rank in "01"]
        never = self.processes(program.replace("CALL", "pass"), pair)
        self.assertEqual([job.code for job in never], [4, 0], "\n".join(map(str, never)))
        self.assertRegex(never[0].err, r"\[rank 0\] has waited 10 seconds at the folder .* for rank 1\n")
        self.assertRegex(never[0].err, r"after 12 s not every rank has come .*: 1 of 2 are missing \(1\)")
        late = self.processes(program.replace("CALL", "hearsay.size()"), pair)
        self.assertEqual(late[0].code, 4, late[0])
        told = r"\[rank 0\] has waited \d+ seconds in hearsay.join\(\) for rank 1; every rank"
        self.assertRegex(late[0].err, told)
        self.assertRegex(late[0].err, "rank 1 (on .* has left the job|is at the program's end), and this rank")

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
        job = self.command(*launch, "--without-mpi", "-n", "2", "program.py", "-n", "9")
        self.assertEqual(sorted(job.out.splitlines()), [f"rank {rank}: ['-n', '9']" for rank in range(2)], job)
        job = self.command(*launch, "--without-mpi", "--tag-output", "-n", "2", "program.py")
        self.assertEqual(job.code, 2, job)
        self.assertIn("'--tag-output' is an option of mpirun", job.err)

    def test_what_python_refuses_to_launch(self):
        """Before mpirun is started; and nothing of it commands a terminal."""
        hosts = self.folder / "hosts"
        for words, code, said in (
            (["--hostfile", hosts], 2, "hosts': '-oProxyCommand=x' is no name of a host"),
            (["-machinefile", hosts], 2, "hosts': '-oProxyCommand=x' is no name of a host"),
            (["--hostfile", "absent"], 3, "the host file 'absent' cannot be read: No such file or directory"),
            (["--hostfile", "/dev/null"], 3, "'/dev/null' is no plain file"),
            (["--host", "-oProxyCommand=x"], 2, "--host -oProxyCommand=x: '-oProxyCommand=x' is none of NAME"),
            (["-H", "node01,-ox:2"], 2, "'-ox:2' is none of NAME, NAME:SLOTS"),
            (["\x1b]0;X\x07", "-n", "\x1b[2J"], 2, r"not '\x1b[2J'"),
            (["-n", "1000001"], 2, "-n 1000001: a job has at most 1,000,000 ranks"),
            (["--without-mpi", "-n", "99999999999"], 2, "a job has at most 1,000,000 ranks"),
            (["-n", "9" * 5000], 2, "a job has at most 1,000,000 ranks"),
            (["-n", "000"], 2, "-n must be a whole number from 1 up, not '000'"),
        ):
            hosts.write_text("node01 slots=4\n  -oProxyCommand=x slots=2\n", encoding="utf-8")
            job = self.command(sys.executable, "-m", "hearsay", "launch", *words, "-n", "2", "true")
            self.assertEqual(job.code, code, job)
            self.assertIn(said, job.err)
            self.assertFalse("Traceback" in job.err or "\x1b" in job.err, job)

    def test_hosts_that_are_names(self):
        """By the rule of scripts/launch."""
        hosts = self.folder / "hosts"
        for text in ("node01 slots=4\n# -ox\n\n\tuser@node-2.example # far\nnode03", "fe80::1%eth0\r\n", ""):
            hosts.write_text(text, encoding="utf-8")
            _launch.require_hosts(["--tag-output", "--hostfile", str(hosts), "-x", "-o"])
        for text in ("node01;x\n", "\ufeffnode01\n", "node01\xa0-ox\n", "a@-ox\n", "-\n", "\udcff\n"):
            hosts.write_text(text, encoding="utf-8", errors="surrogateescape")
            with self.assertRaisesRegex(ConfigError, "is no name of a host"):
                _launch.require_hosts(["--hostfile", str(hosts)])
        for option in ("--host", "-host", "-H"):
            _launch.require_hosts([option, "node01:4,b@node02:*,c:auto,d"])
            for wrong in ("node01:0", "node01,", "a b", "$x", "node01:-1", "-ox"):
                with self.assertRaisesRegex(ConfigError, "is none of NAME"):
                    _launch.require_hosts([option, wrong])
        with self.assertRaisesRegex(ConfigError, "is none of NAME"):
            _launch.require_hosts(["--host=-ox"])

    def test_words_that_are_no_utf_8_are_handed_on_without_mpi(self):
        job = self.command(sys.executable, "-m", "hearsay", "launch", "--without-mpi", "-n", "1", "sh", "-c",
                           'printf %s "$1" | od -An -tx1', "sh", "\udcff")
        self.assertEqual((job.code, job.out.split()), (0, ["ff"]), job)


if __name__ == "__main__":
    unittest.main()
