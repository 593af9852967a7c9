"""Make the runs of a grid, each once; start it again to go on.

    analysis/hearsay sweep configs/sweeps/digits.yaml [--only TEXT] [--output FOLDER] [--set KEY=VALUE] [--list]
    analysis/hearsay sweep configs/sweeps/digits.yaml --testbed --output runs/digits/testbed
    analysis/hearsay sweep configs/sweeps/digits.yaml --simulate configs/platforms/ethernet-1g-32.xml --jobs 2

A sweep file names a base configuration, what all runs share, and what varies:

    output: runs/sweeps/mnist                     # a run folder per point below it
    set:    {train.epochs: 10}                    # for all runs
    ranks:  [4, 8]
    seeds:  [1, 2, 3]
    axes:   {data.partition.name: [iid, shards]}  # every combination
    methods:
      D-PSGD:            {base: ../mnist/dpsgd-ring.yaml}
      "periodic, H = 4": {base: ../mnist/periodic-ring.yaml, set: {trigger.period: 4}}

Paths are relative to the sweep file, `output` to the working directory. What a run says is kept beside its folder, in
seedN.log. A finished run is never made again; what an unfinished run of the sweep left is replaced. `table` prints the
results, `report --sweep` draws them. scripts/sweep is short for this command.
"""
import concurrent.futures
from pathlib import Path

from hearsay_analysis.errors import DataError, UsageError

PACKAGES = ("yaml",)


def arguments(parser):
    parser.add_argument("sweep", type=Path, help="the sweep file")
    parser.add_argument(
        "--program",
        type=Path,
        help="the hearsay program, or with --simulate the simulator; default: build/release/apps/hearsay, "
        "build/simulator/apps/simulator/hearsay-simulator",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only runs whose folder contains TEXT; may be repeated: any of them",
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="instead of the sweep file's `output`")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting for all runs, stronger than the sweep file's; give it another --output",
    )
    parser.add_argument("--list", action="store_true", help="show what would run, run nothing")
    parser.add_argument("--testbed", action="store_true", help="run on the hosts of scripts/testbed, which must be up")
    parser.add_argument(
        "--simulate",
        type=Path,
        metavar="PLATFORM",
        help="run on a simulated cluster, one rank a host: many ranks in one process",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="runs at a time, on the first N cores; only with --simulate. Two sweeps at once would share them",
    )


def _check(options):
    if options.testbed and options.simulate:
        raise UsageError("--testbed or --simulate, not both")
    if options.jobs < 1 or (options.jobs > 1 and not options.simulate):
        raise UsageError(
            f"--jobs {options.jobs}: 1, or with --simulate more; runs under mpirun would share the machine's cores"
        )


def _way(options):
    """How the runs are made. Throws DataError where the program is missing."""
    from hearsay_analysis.sweeps import making

    built = "simulator/apps/simulator/hearsay-simulator" if options.simulate else "release/apps/hearsay"
    program = options.program or making.ROOT / "build" / built
    if not program.exists():
        hint = "cmake --preset simulator && cmake --build --preset simulator"
        hint = hint if options.simulate else "scripts/quickstart --build-only"
        raise DataError(f"no program at {program}; build it ({hint}), or name it with --program")
    return making.Way(program.absolute(), options.testbed, options.simulate)


def _tell(number, count, folder, outcome):
    state = "failed" if outcome.failed else "diverged" if outcome.code else "finished"
    print(f"[{number}/{count}] {folder}: {state}, {outcome.seconds:.0f} s", flush=True)
    if outcome.reason:
        print("    " + outcome.reason.replace("\n", "\n    "))
        print(f"    exit code {outcome.code}; all it said: {outcome.log}", flush=True)


def _make_all(todo, way, jobs):
    """The number of runs that failed. An interruption starts no further ones."""
    from hearsay_analysis.sweeps import making

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        outcomes = [pool.submit(making.make, point, way) for point in todo]
        try:
            for number, (point, outcome) in enumerate(zip(todo, outcomes), 1):
                _tell(number, len(todo), point.folder, outcome.result())
                failures += outcome.result().failed
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return failures


def _only(points, parts):
    """The points whose folder contains one of the parts; all if there are none. A part of no folder is a mistake."""
    for part in parts:
        if not any(part in str(point.folder) for point in points):
            raise UsageError(f"no run's folder contains {part!r}; --list shows them")
    return [point for point in points if not parts or any(part in str(point.folder) for part in parts)]


def run(options):
    """Makes what is missing. Returns 1 where a run failed."""
    from hearsay_analysis.sweeps import grid, making, sweep_file

    _check(options)
    plan = sweep_file.read_sweep_file(options.sweep)
    points = grid.points(plan, options.output, sweep_file.read_overrides(options.set))
    points = _only(points, options.only)
    todo = [point for point in points if not making.is_done(point.folder)]
    way = None if options.list else _way(options)
    print(f"{len(points)} runs, {len(points) - len(todo)} done, {len(todo)} to do", flush=True)
    if options.list:
        for point in todo:
            print(point.folder)
        return 0
    failures = _make_all(todo, way, options.jobs)
    if failures:
        print(f"{failures} of {len(todo)} runs failed, see above; the same command tries them again")
    return 1 if failures else 0
