"""One process of a job: its lifetime, and how it ends when something goes wrong.

A rank that dies of an exception would leave the others waiting. So an exception that nobody catches ends the job, with
the rank and the line in the message; so does one that leaves a step. At the end of the program the ranks leave
together.
"""
from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import contextmanager

from . import _core, _store
from .errors import ConfigError, DataError, DivergenceError, Error, RankLeft, TakenForDead

FIRST_SIGNAL_CODE = 128
JOB_TO_JOIN = "HEARSAY_JOIN"  # set by `launch --join`
PROGRAM_END = "the program's end"
TIME_FOR_RANK_0_S = 0.5  # where all ranks fail alike, rank 0 speaks for them


# As SIGTERM: the terminal is gone, or a cluster says that time is nearly up.
STOPPING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)


class Stopped(KeyboardInterrupt):
    """SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 or SIGXCPU has come: the program ends as with Ctrl-C, with the exit code
    128 + its number, such as 143."""

    def __init__(self, number=signal.SIGTERM):
        super().__init__(number)
        self.signal = signal.Signals(number)


class _Process:
    """What this process has open. There is one: `process`."""

    def __init__(self):
        self.job = None
        self.refused = False  # `join` did not begin: there is no job
        self.members = []  # in the order in which they have joined
        self.not_written = {}  # what a run folder lacks at last, by its name
        self.meetings = None  # of all ranks, from the first `join` of all of them on
        self.groups = {}  # the jobs of processes with the same shard, by their ranks of torch.distributed
        self.speaks = False  # the rank that reports has left: it was this one
        self.outlives = False  # a member was one whose ranks may die: what all ranks end together is not ended
        self.to_join = None  # the name of a job that trains
        self.comes = False  # there, and is not in it yet
        self.grows = False  # others may come
        self.child = False  # forked: MPI and the communication thread belong to the parent
        self.pid = os.getpid()
        self.hook_at_import = self.hook_before = sys.excepthook
        self.ending = False
        self.signals = []  # that end the program as SIGTERM does: nobody else has asked for them
        atexit.register(self.end_before_join)
        sys.excepthook = self.exception  # mpi4py may have started MPI: an exception before `join` ends the job, too

    def start(self):
        if self.child:
            raise RuntimeError(
                "this is a forked process (a DataLoader's worker?): its parent is the rank. Call hearsay.join, rank "
                "and size in the process that the launcher has started"
            )
        if self.job is not None:
            return
        if self.job_to_join() is not None:
            raise ConfigError(f"{JOB_TO_JOIN}: a process that joins a job has no number there before hearsay.join")
        try:
            job = _core.Job(store=_store.of_torch)
            _require_whole_job(job.ranks)
        except Error:
            self.refused = True
            raise
        self.begin(job)

    def begin(self, job):
        """This process belongs to a job from now on."""
        self.job = job
        if job.ranks > 1:  # C++ has set it, where os.environ does not look
            os.environ[_core.rank_process_variable] = str(os.getpid())
        if sys.excepthook != self.exception:  # somebody has set another one since the import
            self.hook_before, sys.excepthook = sys.excepthook, self.exception
        os.register_at_fork(after_in_child=self.forked)
        atexit.register(self.end)
        self.heed_signals()

    def heed_signals(self):
        """Those end the program that nobody else has asked for."""
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING_SIGNALS:
                if signal.getsignal(number) == signal.SIG_DFL:
                    signal.signal(number, _stop)
                    self.signals.append(int(number))

    def job_to_join(self, named=None):
        """That `hearsay.join` names, or else the launcher: what this process starts is not to join it."""
        self.to_join = os.environ.pop(JOB_TO_JOIN, self.to_join)
        found = named or (self.to_join if self.job is None else None)
        self.refused = self.refused or found is not None
        return found

    @contextmanager
    def coming_to(self, name, plan, block):
        """A job that trains already, and where its ranks meet. Within the block this process is not in it yet, and what
        goes wrong ends nobody else."""
        if self.child or self.job is not None:
            raise ConfigError(
                f"job={name}: this process belongs to another job; one that joins is started by itself, and calls "
                f"hearsay.join first of all"
            )
        common = plan, block.replica, block.described()
        job, self.comes = None, True
        self.heed_signals()
        try:
            job = _core.come_to(name, *common)
            self.meetings = _core.Meetings(job, *common)
            yield job, self.meetings
        except BaseException:
            self.members.clear()
            self.meetings = None
            if job is not None:
                job.close_places()
            raise
        self.comes, self.grows = False, True
        self.begin(job)

    def job_of(self, communicator, group):
        """That of a new member; collective where it is one of `group`, the processes with the same shard."""
        if group is not None:
            if group.ranks not in self.groups:
                self.groups[group.ranks] = _core.Job(store=group.store, seat=group.seat())
            return self.groups[group.ranks]
        return self.job if communicator is None else _core.Job(communicator.py2f())

    def meetings_of(self, job, plan, block):
        """Where the ranks of a new member meet: all of them are in `hearsay.join` when this returns."""
        common = plan, block.replica, block.described()
        if job is not self.job:
            return _core.Meetings(job, *common)
        if self.outlives or any(member._core.may_die for member in self.members):
            raise ConfigError(
                "hearsay.join after a member with train.on_failure: continue: ranks may have died, and all would have "
                "to join; make one member a program, or start another job"
            )
        if plan.others_may_come and self.meetings is not None:
            raise ConfigError("train.joins is for the only member of a program, and this one had another")
        if self.meetings is None:
            self.grows = plan.others_may_come
            self.meetings = _core.Meetings(job, *common)
        open_members = [member for member in self.members if member._meetings is self.meetings]
        if open_members:
            open_members[-1]._meet("hearsay.join()")
        else:
            self.meetings.meet("hearsay.join()")
        return self.meetings

    def forked(self):
        self.child = True
        sys.excepthook = self.hook_before
        atexit.unregister(self.end)

    def require_parent(self):
        if self.child:
            raise RuntimeError(
                "a member was used in a forked process (a DataLoader's worker?): it belongs to the process that "
                "joined, which has the communication thread. Let workers load data, and nothing else"
            )

    def exception(self, kind, value, trace):
        """sys.excepthook: says what happened and where, then ends the job."""
        if self.ending or os.getpid() != self.pid:  # a hook that was set since the import calls this one in its turn
            self.hook_at_import(kind, value, trace)
            return
        if hasattr(sys, "ps1") or sys.flags.interactive:
            self.hook_before(kind, value, trace)
            return
        self.ending = True
        if self.job is None:
            self.exception_before_join(kind, value, trace)
            return
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # mpirun sends it as soon as one rank has ended
            signal.signal(signal.SIGCHLD, _nothing)
        if isinstance(value.__context__, Stopped):  # what has come of it on the way
            kind, value, trace = type(value.__context__), value.__context__, value.__context__.__traceback__
        code, status = _ending(kind, value)
        sentence = f"{place_of(trace)}{describe(kind, value)}"
        if (alone := _taken_for_dead(value)) is not None:
            self.end_alone(alone.code, f"{place_of(alone.__traceback__)}{alone}")
        interrupted = status == "stopped" and code > FIRST_SIGNAL_CODE
        if self.job.rank != 0 and (interrupted or issubclass(kind, (ConfigError, DataError, RankLeft))):
            time.sleep(TIME_FOR_RANK_0_S)  # rank 0's words are the same, and its abort ends this rank
        if not issubclass(kind, (Error, KeyboardInterrupt)):
            self.hook_before(kind, value, trace)
        self.abort(code, status, sentence)

    def exception_before_join(self, kind, value, trace):
        """Where MPI runs already, by mpi4py, the other ranks would wait for this one. Where `join` has refused to
        begin, its sentence and its exit code are all."""
        refused = self.refused and issubclass(kind, Error)
        if not refused:
            self.hook_before(kind, value, trace)
        mpi = _mpi4py_in_a_job()
        if mpi is not None or refused:
            where = f"[rank {mpi.COMM_WORLD.rank}] " if mpi is not None else ""
            print(f"hearsay: {where}{place_of(trace)}{describe(kind, value)}", file=sys.stderr, flush=True)
            sys.stdout.flush()
        if mpi is not None:
            mpi.COMM_WORLD.Abort(_ending(kind, value)[0])
        elif refused or self.comes:
            sys.stderr.flush()
            os._exit(_ending(kind, value)[0])

    def end_before_join(self):
        """atexit: where mpi4py has started MPI, others may wait for this rank in `join`."""
        if self.job is None and os.getpid() == self.pid and _mpi4py_in_a_job() is not None:
            _core.Job().tell_of_end()

    def note_leaving(self, core):
        """A member leaves: what of it stands when the program ends."""
        self.outlives = self.outlives or core.may_die
        self.speaks = core.reports

    def is_speaker(self):
        """Whether this rank says what one rank says: rank 0, or the first that lives."""
        if not self.members:
            return self.speaks or self.job.rank == 0
        return any(member._core.reports for member in self.members)

    def end_alone(self, code, sentence):
        """The others go on without this rank. Never returns."""
        print(f"hearsay: [rank {self.job.rank}] {sentence}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def abort(self, code, status, sentence):
        """Ends the job of which this rank is one; never returns."""
        where = f"[rank {self.job.rank}] " if self.job.ranks > 1 else ""
        signalled = code > FIRST_SIGNAL_CODE  # comes to all ranks, and after another rank's end, too: rank 0 speaks
        told = any(_has_ended(member.directory) for member in self.members)
        speaks = self.is_speaker()
        if not signalled or (speaks and not told):
            print(f"hearsay: {'' if signalled else where}{sentence}", file=sys.stderr)
        for member in self.members:
            try:
                if not told and (speaks or not signalled):
                    member._core.write_ending(status, sentence if signalled else f"{where}{sentence}")
            except Exception as error:  # the disk may be what has failed
                print(f"hearsay: {where}the reports could not be written: {error}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        if self.job.ranks > 1 or self.grows:
            self.job.close_places()
            self.job.abort(code)
        os._exit(code)

    def end(self):
        """atexit: the ranks leave together, then the job ends."""
        for member in self.members:
            if member._exited:  # by sys.exit inside of a step, which no excepthook hears of
                code, sentence = member._exited
                self.abort(code, "stopped", sentence)
        if self.meetings is None and self.job.ranks > 1:
            self.job.tell_of_end()
        try:
            for member in list(self.members):
                member._leave(PROGRAM_END)
            mpi = getattr(sys.modules.get("mpi4py"), "MPI", None)
            meets = self.meetings is not None and not self.outlives
            if meets and not (mpi is not None and mpi.Is_finalized()):
                self.meetings.meet(PROGRAM_END)
                self.meetings.close()
        except BaseException as error:
            self.exception(type(error), error, error.__traceback__)
        speaks = self.is_speaker()
        for job in self.groups.values():
            job.end()
        if self.outlives:
            self.job.close_places()
        else:
            self.job.end()
        lacking = [f"\n  {folder}: {line}" for folder, lines in self.not_written.items() for line in lines]
        waits = self.outlives and mpi is not None and mpi.Is_initialized()  # mpi4py's own end, for the dead
        if not lacking and not waits:
            return
        if lacking and speaks:
            text = "the run has ended, but not all of its files could be written:" + "".join(lacking)
            print(f"hearsay: {text}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(DataError.code if lacking else 0)  # nothing else gives the interpreter an exit code by now


def _taken_for_dead(error):
    """The TakenForDead that has led to this exception, if one has."""
    while error is not None and not isinstance(error, TakenForDead):
        error = error.__cause__ or error.__context__
    return error


def _require_whole_job(ranks):
    """torch.distributed can know of more processes than the launcher's variables: init_process_group was told."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if ranks > 1 or distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    size, rank = distributed.get_world_size(), distributed.get_rank()
    if size > 1:
        raise ConfigError(
            f"torch.distributed has {size} processes, but no launcher says so to Hearsay, and each would train alone. "
            f"Start them by `torchrun --nproc-per-node {size} …` or `python3 -m hearsay launch -n {size} …`, or say it "
            f"before hearsay.join: os.environ.update(RANK='{rank}', WORLD_SIZE='{size}')"
        )


def _mpi4py_in_a_job():
    """mpi4py's MPI, where it has started several ranks that are still there; else None."""
    mpi = getattr(sys.modules.get("mpi4py"), "MPI", None)
    there = mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized() and mpi.COMM_WORLD.size > 1
    return mpi if there else None


def _has_ended(directory):
    """Whether another rank has told already how the run has ended."""
    summary = os.path.join(directory, "summary.json")
    try:
        if not os.path.isfile(summary):  # a FIFO would wait for somebody who writes
            return False
        with open(summary, encoding="utf-8") as file:
            return json.load(file)["status"] != "finished"
    except (OSError, ValueError, KeyError):
        return False


def _stop(number, frame):
    for warning in process.signals:
        if warning != signal.SIGTERM:
            signal.signal(warning, _nothing)  # it may come every second
    signal.signal(signal.SIGCHLD, _nothing)
    raise Stopped(number)


def _nothing(number, frame):
    """Also in the place of torch's handler, which raises where a DataLoader's worker is killed: all of the job is."""


def _ending(kind, value):
    """(exit code, status of the summary)"""
    if issubclass(kind, DivergenceError):
        return value.code, "diverged"
    if issubclass(kind, Error):
        return value.code, "stopped"
    if issubclass(kind, Stopped):
        return FIRST_SIGNAL_CODE + value.signal, "stopped"
    if issubclass(kind, KeyboardInterrupt):
        return FIRST_SIGNAL_CODE + signal.SIGINT, "stopped"
    return 1, "stopped"


def describe(kind, value):
    """One line about an exception."""
    if issubclass(kind, Stopped):
        return f"stopped by {value.signal.name}"
    if issubclass(kind, KeyboardInterrupt):
        return "stopped by Ctrl-C (SIGINT)"
    if issubclass(kind, Error):
        return str(value)
    lines = traceback.format_exception_only(kind, value)[-1].strip().splitlines()
    return lines[0] if len(lines) == 1 else f"{lines[0]} … {lines[-1]}"  # a DataLoader's has its worker's traceback


def place_of(trace):
    """'train.py:41: ', the innermost line that is not Hearsay's own."""
    here = os.path.dirname(os.path.abspath(__file__))
    lines = [f for f in traceback.extract_tb(trace) if os.path.dirname(os.path.abspath(f.filename)) != here]
    user = [f for f in lines if "/dist-packages/" not in f.filename and "/lib/python" not in f.filename] or lines
    return f"{user[-1].filename}:{user[-1].lineno}: " if user else ""


process = _Process()


@contextmanager
def watching_start():
    """Meanwhile a rank that dies ends the job, where the launcher would leave the others waiting for it."""
    watch = _core.StartWatch()
    try:
        yield
    finally:
        watch.end()


def rank() -> int:
    """This process's number among those that the launcher has started, from 0; 0 where there is no launcher.

    May be called before `hearsay.join`, to load data on one rank for example. Starts the job as `join` does, so the
    first call is collective."""
    process.start()
    return process.job.rank


def size() -> int:
    """How many processes the launcher has started; 1 where there is no launcher. As `rank`, before or after `join`."""
    process.start()
    return process.job.ranks
