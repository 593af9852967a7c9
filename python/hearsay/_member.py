"""A member: this rank's end of the job."""
from __future__ import annotations

import json
import math
import operator
import os
import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union, cast

import numpy as np

from hearsay_analysis.text import shown

from . import _blocks, _core, _cores, _graphs, _rates, _shards, _sharing, _watch
from ._process import place_of, process, watching_start
from ._summary import Summary
from .errors import ConfigError, DataError, DivergenceError, RankDied

NAN = float("nan")
LOGGED = ("messages", "bytes_sent", "staleness_max_iterations")  # of `Member.counts`
T = TypeVar("T")  # what a loader gives


class Step:
    """One iteration, as `member.step` gives it: a context manager.

    Set `step.loss = loss` (a number, or a tensor of one) inside the block, and the run folder has it.
    """

    def __init__(
        self,
        member: Member,
        optimizer: Any,
        learning_rate: _rates.Rate,
        backward_passes: Optional[int],
        outside: bool = False,
    ):
        """`backward_passes`: None where nobody has said it: gradients are final at the end of the step only.
        `outside`: the loop does not know of the step (hearsay.wrap): it sets gradients to 0 and calls the optimizer."""
        self._member = member
        self._optimizer = optimizer
        self._learning_rate = learning_rate
        self._passes_left = None if backward_passes == 1 else [backward_passes or math.inf] * len(member._block.names)
        self._exchanged = False
        self._outside = outside
        self._forbidden = [_watch.StepForbidden(part) for part in _rates.parts_of(None if outside else optimizer)]
        self.loss: Any = None

    def __enter__(self) -> Step:
        member = self._member
        member._require_whole()
        member._steps.tell(member._core, self._optimizer, self._learning_rate)
        member._begins(keep_gradients=self._outside)
        member._open_step = self
        member._start()
        for part in self._forbidden:
            part.enter()
        return self

    def exchange(self) -> None:
        """The gradients are ready: mixes the parameters with what has come, or replaces the gradients by all ranks'.

        The end of the block does that by itself, and then calls the optimizer. Call it where something has to happen
        between the two: clipping an aggregated gradient, or an update of your own.
        """
        self._exchange()
        self._member._block.hand_on()

    def _exchange(self):
        member = self._member
        member._require_whole()
        if self._exchanged:
            raise RuntimeError("step.exchange() was called twice in one step")
        member._has_gradients()
        member._steps.tell(member._core, self._optimizer, self._learning_rate)
        member._core.finish(_rates.reported_rate(self._optimizer, self._learning_rate))
        self._exchanged = True

    def _apply(self):
        member = self._member
        member._block.gather_edited_gradients()
        with member._block.applying():
            _applied(self._optimizer)()
        if self._optimizer is not member._optimizer:
            member._serve_with(self._optimizer)

    def __exit__(self, kind, value, trace) -> None:
        member = self._member
        member._open_step = None
        for part in self._forbidden:
            part.exit()
        if kind is not None:
            member._breaks(f"step {member.steps + 1} was left by", value)
            if issubclass(kind, SystemExit):
                code = value.code if isinstance(value.code, int) and value.code else 1
                place = place_of(trace)
                member._exited = code, f"{place}the program ended inside of step {member.steps + 1} (sys.exit)"
            return
        try:
            if not self._exchanged:
                self._exchange()
            if self._optimizer is not None:
                self._apply()
            member._stepped(self.loss)
        except BaseException as error:
            member._breaks(f"step {member.steps + 1} was left by", error)
            raise

    def _make_without_gradient(self):
        """The step is made with a gradient of 0; the optimizer steps only by what others have sent."""
        block = self._member._block
        block.begin()
        self.exchange()
        if not block.flat_gradients.any():
            self._optimizer = None
        self.__exit__(None, None, None)

    def _make_way(self, call):
        """`call` is collective. A step that began with a pass after which the loop has not stepped ends here; its
        gradients stay for the next one."""
        if not self._outside:
            raise RuntimeError(f"{call} is collective and belongs between two steps, not inside of one")
        tensors = self._member.parameters.values()
        gradients = [None if tensor.grad is None else tensor.grad.clone() for tensor in tensors]
        self._make_without_gradient()
        for tensor, gradient in zip(tensors, gradients):
            tensor.grad = gradient

    def _gradient_ready(self, segment):
        if self._passes_left is not None:
            self._passes_left[segment] -= 1
            if self._passes_left[segment] > 0:
                return
        self._member._ready(segment)


class Member:
    """This rank's end of the job, made by `hearsay.join`.

    rank, ranks   this rank's number, from 0, and how many there are; those of its replica where replicas are several
                  processes
    shard         then: which of them this one is, as `join(mesh=…)` says; else None
    steps         iterations that this rank has made; where it has joined later, after as many of the others
    parameters    name → what the loop trains: the module's own parameters, or numpy views (float32)
    gradients     name → float32 views of the gradients, of the same shapes; zero when a step begins
    directory     the run folder
    exchange      the name of the algorithm, "eventgrad" …
    layer_wise    whether gradients are exchanged during the backward pass
    lockstep      whether ranks wait for each other in every step
    loss          where `hearsay.wrap` makes the steps: set it before `optimizer.step()`, and the run folder has it

    What is called collective here is called by every rank, between two steps, in the same order. Where a rank does
    something else meanwhile (goes on stepping, calls something else, ends its program), all that wait for it raise
    `hearsay.errors.RankLeft`, which names the rank and both calls. A rank that is merely slow is waited for.
    """

    rank: int
    ranks: int
    shard: Optional[int]
    parameters: Dict[str, Any]
    gradients: Dict[str, Any]
    directory: str
    exchange: str
    layer_wise: bool
    lockstep: bool
    loss: Any

    def __init__(self, core, meetings, plan, block, steps, log=None, shard=None, data_seat=None):
        """`data_seat`: (rank, ranks), by which data are dealt out, where these are others than the job's."""
        self._core, self._meetings, self._plan, self._block, self._steps = core, meetings, plan, block, steps
        self._open_step = None
        self._broken = self._broken_by = None
        self._exited = None
        self._left = False
        self._optimizer = None
        self._begin_step = lambda: None  # where the loop does not say it
        self.loss = None
        self.rank, self.ranks, self.shard = core.rank, core.ranks, shard
        self.directory, self.exchange, self.lockstep = plan.directory, plan.exchange, plan.lockstep
        self.layer_wise = core.layer_wise
        self.parameters, self.gradients = block.parameters, block.gradients
        self._neighbours = list(core.neighbours())
        if self.layer_wise:
            block.on_gradient(self._gradient_arrived)
        self._deals = _sharing.Deals(*(data_seat or (self.rank, self.ranks)), plan.seed)
        self._watch = _watch.Watch(block, self.rank, self.ranks, speaks=self._is_first())
        self._epoch_known = False
        self._averages = 0  # that the parameters are now
        self._log = None if shard else log
        self._log_every = plan.every_iterations
        process.members.append(self)

    # ------------------------------------------------------------------ the loop

    def step(
        self, optimizer: Any = None, *, learning_rate: _rates.Rate = None, backward_passes: int = 1
    ) -> Step:
        """One iteration, around the code that makes the gradients::

            with member.step(optimizer) as step:
                step.loss = criterion(model(x), y)
                step.loss.backward()

        At the start gradients are set to 0 and what has news is sent, without waiting. At the end parameters are mixed
        with what has come (or gradients are replaced by all ranks'), then the optimizer moves the parameters.

        optimizer        anything with `.step()`, a list of such, each with parameters of its own, or a function without
                         arguments that applies the update; None: the block calls `step.exchange()` and applies the
                         update itself
        learning_rate    of this step, where exchanges measure by it and `optimizer` does not say it: a number, or a
                         mapping of parameters' names to numbers. SGD, Adam, AdamW, NAdam, Adamax, RMSprop, Adagrad and
                         Muon of torch are asked for the rates of their groups in every step
        backward_passes  how many backward passes make one gradient (gradient accumulation)

        `optimizer.step()` inside of the block as well is an error: it would make twice the step.

        An exception in the block ends the job, with rank and line, unless the loop catches it; the member cannot be
        used afterwards.
        """
        if backward_passes < 1:
            raise ValueError(f"backward_passes is a whole number from 1 up, not {backward_passes}")
        return Step(self, _rates.as_one(optimizer, self._optimizer), learning_rate, backward_passes)

    def share(self, loader: Iterable[T]) -> Iterable[T]:
        """This rank's part of the data, as an iterable that can be gone through once an epoch.

        A torch DataLoader over a data set with a length: every rank gets ⌈N/P⌉ examples of each epoch (the first ones
        come twice where N/P is no whole number), in a new common random order each epoch if the loader shuffles, drawn
        from the configuration's `seed`; its batch size is that of one rank. Another sampler (weighted, with
        replacement, of a subset, of your own) draws its whole epoch on every rank, by random numbers of that seed which
        all ranks have in common, and a rank takes every P-th draw; of a batch_sampler of your own, every P-th batch. A
        DistributedSampler of this rank, or what has its `num_replicas` and `rank`, deals out already, and its loader is
        returned as it is; ConfigError for that of another rank. Samplers themselves are dealt out likewise.

        Anything else that can be iterated, IterableDatasets too: every P-th item, the same number for all ranks. Items
        and their order are the same on every rank, which is the caller's to see to. What can be gone through once (a
        generator) can be so here. ConfigError where there are fewer items than ranks, and `len` says so.

        Where replicas are several processes, P is their number, or that of all processes which get data of their own
        (`data_mesh` of `hearsay.join`).

        Steps of an epoch, for densities that change by the epoch and for the reports, are those of what the first step
        is made with.
        """
        self._require_whole()
        return self._deals.share(loader)

    # The same without `with`, for loops that are not shaped like one.

    def start(self) -> None:
        """The parameters are final: what has news is sent. Does not wait. Gradients are set to 0. Call it before the
        forward pass: asynchronously, what is sent may move the parameters, too."""
        self._require_whole()
        self._steps.tell(self._core, None, None, required=False)
        self._begins()
        self._start()

    def gradient_ready(self, parameter: Union[int, str]) -> None:
        """The gradient of this parameter (its name, or its number in `member.parameters`) is final: layer-wise
        exchanges send it now. Optional."""
        self._require_whole()
        names = self._block.names
        if isinstance(parameter, str) and parameter not in names:
            raise KeyError(f"there is no parameter '{parameter}'; there are {', '.join(names)}")
        number = names.index(parameter) if isinstance(parameter, str) else parameter
        self._ready(_whole("the parameter of member.gradient_ready, where it is no name,", number, 0, len(names)))

    def finish(self, learning_rate: _rates.Rate = None) -> None:
        """All gradients are ready: mixes the parameters, or replaces the gradients. In lockstep it waits.
        `learning_rate`: as in `step`."""
        self._require_whole()
        self._has_gradients()
        self._steps.tell(self._core, None, learning_rate)
        self._core.finish(_rates.reported_rate(None, learning_rate))
        self._block.hand_on()

    def stepped(self, loss: Any = None) -> None:
        """The update has been applied."""
        self._require_whole()
        self._stepped(loss)

    # ------------------------------------------------------------------ what comes out

    @contextmanager
    def averaged(self) -> Iterator[float]:
        """Collective, between two steps. Inside the block the parameters, and the buffers of a torch module that are
        floats (of 16, 32 or 64 bits), are the averages over ranks; integer buffers and frozen parameters are this
        rank's own. Afterwards all are again what they were. Gives the consensus distance
        sqrt(mean over ranks of ‖x_i − mean‖²)."""
        mean, mean_buffers, distance = self._together("member.averaged()", self._mean)
        with self._as(mean, mean_buffers):
            yield distance

    def end(self, optimizer: Any = None) -> None:
        """Collective, after the last step: all that any rank has sent is taken in. Where ranks are asynchronous, a rank
        that comes first goes on serving the others until all are here (`summary` and `leave` do that as well); where
        they take local steps, the parameters are those of this rank's last round from here on: call it before the last
        `evaluate`.

        optimizer  for exchanges whose ranks are servers (`gradient_dropping`): what applies gradients that come after
                   this rank's last step. Default: that of the last `member.step(optimizer)`, that of `join`, or plain
                   SGD with the learning rate of the last step

        Raises DivergenceError, on all ranks the same, if a parameter of any rank is not finite.
        """
        self._require_whole()
        if optimizer is not None:
            self._serve_with(_rates.as_one(optimizer, self._optimizer))

        def work():
            with self._moved():
                self._core.end()

        self._together("member.end()", work)

    def evaluate(
        self,
        score: Callable[[], Union[Mapping[str, Any], Tuple[Mapping[str, Any], int]]],
        *,
        lower_is_better: Iterable[str] = (),
    ) -> Dict[str, float]:
        """Collective, between two steps: how good the averaged model is, and every rank's own.

        `score()` tests the model as it stands and returns what it is worth, names with numbers: {"accuracy": 0.97,
        "loss": 0.1}, or any others, {"bleu": 31.5}. A torch module is in evaluation mode meanwhile, without gradients.

        Where it returns names with numbers alone, every rank tests its own model on the whole test set, and rank 0 the
        averaged one. To share the work, let every rank test on examples of its own, and return also how many they are::

            mine = torch.utils.data.Subset(test_set, range(member.rank, len(test_set), member.ranks))
            member.evaluate(lambda: ({"accuracy": accuracy_on(mine)}, len(mine)))

        The averaged model is then tested on all ranks, and is worth the mean over all examples, as if one rank had seen
        them all; a rank's own model is judged by its own examples.

        The numbers go into the run folder (`metrics` in its summary) and are returned, for every NAME NAME_mean_model,
        NAME_rank_mean and NAME_rank_worst, or accuracy_rank_min; further consensus_distance. accuracy_… and
        loss_mean_model are always there, NaN where the score has none. Tables show the first name that is not the loss.
        Raises DivergenceError, on all ranks, if the averaged model's `loss` is not finite.

        lower_is_better  names of which less is better; known are loss, perplexity, rmse, mse, mae, bits_per_…, …_loss
                         and …_error
        """
        call = "member.evaluate()"
        start = time.perf_counter()

        def work():
            with _evaluating(self._block):
                own, examples = _checked_score(score())
                self._meet(call)
                mean, mean_buffers, distance = self._mean()
                with self._as(mean, mean_buffers):
                    of_mean = own if examples is None and not self._core.is_first else _checked_score(score())[0]
            names = sorted(own, key=lambda name: name == "loss")  # tables show the first one
            if set(of_mean) != set(names):
                raise TypeError(
                    f"score() has returned {list(own)} first and then {list(of_mean)}; return the same names"
                )
            self._meet(call)
            found = self._core.evaluated(
                [(name, not _less_is_better(name, lower_is_better), name.endswith("accuracy")) for name in names],
                [of_mean[name] for name in names],
                [own[name] for name in names],
                examples,
            )
            return names, found, distance

        names, found, distance = self._together(call, work)
        self._core.note_evaluation(time.perf_counter() - start)
        said = {"accuracy_mean_model": NAN, "loss_mean_model": NAN, "accuracy_rank_min": NAN, "accuracy_rank_mean": NAN}
        for name, (mean_model, worst, mean) in zip(names, found):
            said[f"{name}_mean_model"], said[f"{name}_rank_mean"] = mean_model, mean
            said["accuracy_rank_min" if name == "accuracy" else f"{name}_rank_worst"] = worst
        said["consensus_distance"] = distance
        self._tell_log(said)
        return said

    def counts(self) -> Dict[str, int]:
        """What this rank has sent until now: events, messages, deferred, packets, puts, bytes_sent by kind, and
        staleness_max_iterations, the age of the oldest copy that was mixed."""
        self._require_whole()
        return self._core.counts()

    def events(self) -> Dict[str, bool]:
        """Which parameters the last step sent: name → bool. Empty where there is no trigger."""
        self._require_whole()
        return dict(zip(self._block.names, self._core.events()))

    @property
    def neighbours(self) -> List[int]:
        """Ranks that this one exchanges with."""
        return list(self._neighbours)

    @property
    def steps(self) -> int:
        """Iterations that this rank has made; where it has joined later, after as many of the others."""
        return self._core.steps if not self._left else self._steps

    @property
    def replica_hash(self) -> str:
        """64-bit hash of the parameters, as 16 hexadecimal digits: equal hashes, equal replicas, to the last bit."""
        return f"{self._core.replica_hash:016x}"

    @property
    def memory_bytes(self) -> int:
        """What the core holds on this rank beside parameters and gradients: the window, copies, residuals, packets."""
        return self._core.memory_bytes

    def summary(self) -> Summary:
        """Collective, between two steps: waits until everything sent has arrived, writes the reports into the run
        folder (summary.json, communication.csv …) and returns a `hearsay.Summary`, the same numbers on every rank.
        Training may go on afterwards. `summary["not_written"]` names the files that could not be written; where there
        are such when the program ends, its exit code is 3."""
        numbers = self._together("member.summary()", self._write_summary)
        return Summary(numbers, self.rank, self.counts(), self.directory)

    def _write_summary(self):
        with self._moved():
            numbers = json.loads(self._core.summary())
        distance = numbers["consensus_distance"] or 0.0
        self._watch.sums_up(self.steps, distance, self._core.same_on_all, self._deals)
        process.not_written[self.directory] = numbers["not_written"]
        return numbers

    # ------------------------------------------------------------------ checkpoints

    def state_dict(self) -> Dict[str, Any]:
        """Collective, between two steps: all that this rank's end of the job knows beside the parameters, to be saved
        beside the model's and the optimizer's state, by every rank for itself::

            state = {"member": member.state_dict(), "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, f"checkpoint.{member.rank}.pt")

        Triggers, copies of the neighbours, residuals, corrections, draws, counts, steps, and how often `member.share`
        has dealt the data out. Where a rank has died, its part is missing, and the others' cannot be loaded: start from
        the models. Its size is about `memory_bytes`. Asynchronous ranks wait here until everything sent
        has arrived and is mixed in, so save the model after this. Keys: rank, ranks, steps (numbers), epochs (a list
        of numbers), state (a tensor or an array of uint8), and of a shard its number, shard: two of them have the same
        rank, so let torch.distributed.get_rank() name the file.
        """

        def work():
            with self._moved():
                return self._block.kept(self._core.state())

        state = self._together("member.state_dict()", work)
        known = {"rank": self.rank, "ranks": self.ranks, "steps": self.steps, "epochs": self._deals.epochs()}
        known.update({} if self.shard is None else {"shard": self.shard})
        masters = [values.clone() for values in self._block.masters()]
        return {**known, "state": state, **({"masters": masters} if masters else {})}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Collective, between `hearsay.join` and the first step: goes on where `state_dict` was asked.

        Load the model's and the optimizer's state too. In lockstep, parameters and messages are then, to the last bit,
        those of a run that was not stopped, if the loop itself goes on with the same batches and random numbers
        (`torch.get_rng_state`). The run folder is a new one: counts in its summary are of the whole training, metrics
        begin with the next step. Raises DataError if the state is another rank's, or that of a job with another number
        of ranks, graph, exchange or model: then start from the model's state alone.
        """
        self._require_whole()
        if self.steps > 0 or self._open_step is not None:
            raise RuntimeError(
                f"member.load_state_dict() after {self.steps} steps; load between hearsay.join and the first step"
            )
        missing = {"ranks", "epochs", "state"} - set(state)
        if missing:
            raise DataError(f"this is not the state_dict() of a hearsay.Member: it has no {', '.join(sorted(missing))}")
        if state["ranks"] != self.ranks:
            raise DataError(
                f"the member's state was saved by {state['ranks']} ranks, and this job has {self.ranks}; start "
                f"{state['ranks']}, or load the model's state alone, which begins with new triggers and residuals"
            )
        if state.get("shard") != self.shard:
            raise DataError(
                f"the member's state is that of shard {state.get('shard')}, and this process has shard {self.shard}; "
                f"let every process load what it has saved itself"
            )
        self._meet("member.load_state_dict()")
        with self._moved():
            for values, master in zip(self._block.masters(), state.get("masters", ())):
                values.copy_(master)
            self._core.load_state(np.ascontiguousarray(state["state"], dtype=np.uint8))
        self._deals.go_on(state["epochs"])

    # ------------------------------------------------------------------ the end

    def leave(self) -> None:
        """Collective: the end of this member. Writes the reports if `summary` has not. The program's end does it, too.

        The parameters stay where they are and may be used further."""
        self._leave("member.leave()")

    def __enter__(self) -> Member:
        return self

    def __exit__(self, kind, value, trace) -> None:
        if kind is None:
            self.leave()

    def __repr__(self):
        return f"<hearsay.Member: rank {self.rank} of {self.ranks}, {self.exchange}, {self.steps} steps>"

    # ------------------------------------------------------------------ inside

    def _is_first(self):
        """Of all processes: it says what needs to be said once."""
        return self.rank == 0 and not self.shard

    def _together(self, call: str, work: Callable[[], T]) -> T:
        """What `work()` comes to, on all ranks that live: where one dies meanwhile, the others begin the call again
        (python/core/together.hpp). Collective."""
        self._require_whole()
        if self._open_step is not None:
            self._open_step._make_way(call)
        found = None
        while True:
            try:
                self._core.begin()
                self._meet(call)
                found = work()
                self._core.agree()
                return found
            except RankDied:
                self._broken = None
                if self._core.is_done():
                    return cast(T, found)
            except BaseException:
                self._core.give_up()
                raise

    def _meet(self, call):
        """All ranks are in this collective call when this returns."""
        self._require_whole()
        if self._open_step is not None:
            self._open_step._make_way(call)
        try:
            with self._moved():
                self._core.meet(call)
        except BaseException as error:
            self._breaks(f"{call} was left by", error)
            raise

    @contextmanager
    def _moved(self):
        """Between two steps, around what may move the block: the model moves with it."""
        self._block.pull()
        yield
        self._block.push()
        self._block.spread()

    def _leave(self, call):
        if self._left:
            return
        self._together(call, self._write_summary)
        self._steps = self._core.steps
        self._left = True
        process.members.remove(self)
        self._block.release()
        process.note_leaving(self._core)
        self._core.leave()
        if self._meetings is not process.meetings and not process.outlives:
            self._meetings.close()

    def _mean(self):
        """(parameters, float buffers, consensus distance) of all ranks that live. Collective."""
        with self._moved():  # what arrives meanwhile stays
            return self._core.average(self._block.float_buffers().values())

    @contextmanager
    def _as(self, mean, mean_buffers):
        """The model is that one, within the block."""
        block = self._block
        buffers = block.float_buffers()
        before = block.saved()
        try:
            self._averages += 1
            block.put(mean)
            buffers.put(mean_buffers)
            yield
        finally:
            self._averages -= 1
            block.restore(before)
            buffers.restore()

    def _begins(self, keep_gradients=False):
        if self._averages:
            raise RuntimeError(
                "a step inside of member.averaged(): it would be lost where the parameters become those of before; "
                "step after the block"
            )
        self._watch.begins()
        self._block.begin(keep_gradients)
        if not self._epoch_known and self._deals.epoch_length:
            self._core.iterations_per_epoch(self._deals.epoch_length)
        self._epoch_known = True

    def _start(self):
        for newcomer in self._core.newcomers():
            self._let_in(newcomer)
        self._core.start()
        if not self.lockstep:  # what is sent may move the parameters
            self._block.push()
            self._block.spread()

    def _let_in(self, newcomer):
        """A process that has come later gets what it cannot have from its neighbours."""
        self._core.let_in(newcomer, max([1, *self._deals.epochs()]) - 1)
        for bytes_of, _ in self._block.untrained():
            self._core.send(newcomer, bytes_of)

    def _ready(self, segment):
        if 0 <= segment < len(self._block.names):
            self._watch.arrives(segment)
        self._core.gradient_ready(segment)

    def _has_gradients(self):
        self._block.gather_gradients()
        self._watch.exchanges()

    def _stepped(self, loss):
        self._block.pull()
        loss = self._finite(loss)
        self._core.stepped(loss)
        self._block.push()
        self._block.spread()
        self._watch.stepped()
        if self._log is not None and self.steps % self._log_every == 0:
            self._tell_log({"loss": loss, **{name: value for name, value in self.counts().items() if name in LOGGED}})

    def _tell_log(self, numbers):
        if self._log is not None and self._core.reports:
            self._log({name: value for name, value in numbers.items() if math.isfinite(value)}, step=self.steps)

    def _breaks(self, words, error):
        self._broken, self._broken_by = f"{words} {type(error).__name__}: {error}", error

    def _require_whole(self):
        if process.child:
            process.require_parent()
        if self._broken:
            words = f"{self._broken}; the ranks do not agree any more, and this member cannot be used"
            raise RuntimeError(words) from self._broken_by

    def _serve_with(self, optimizer):
        """What applies the gradients that a server is sent after its own last step."""
        self._optimizer, block = optimizer, self._block

        def apply():
            with block.applying():
                _applied(optimizer)()

        self._core.optimizer(apply)

    def _gradient_arrived(self, segment):
        self._begin_step()
        if self._open_step is not None:
            self._open_step._gradient_ready(segment)

    def _finite(self, loss):
        if loss is None:
            return NAN
        loss = float(getattr(loss, "detach", lambda: loss)())  # torch 2 warns of tensors that need a gradient
        if not math.isfinite(loss):
            raise DivergenceError(
                f"rank {self.rank} diverged in step {self.steps + 1}: the loss is {loss}; lower the learning rate"
            )
        return loss


@contextmanager
def _evaluating(block):
    """A torch module in evaluation mode; then every part in its own mode again."""
    module = getattr(block, "module", None)
    if module is None:
        yield
        return
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with block.torch.no_grad():
            yield
    finally:
        for part, mode in modes:
            part.training = mode


def _checked_score(score):
    """(names with numbers, number of examples or None)"""
    examples = None
    if isinstance(score, tuple) and len(score) == 2:
        score, examples = score[0], float(score[1])
        if not (examples >= 0 and math.isfinite(examples)):
            raise TypeError(f"score() says that it has seen {examples} examples; return how many they are, from 0 up")
    if not hasattr(score, "keys") or not score or not all(isinstance(name, str) and name for name in score):
        raise TypeError(
            f"score() returns names with numbers, {{'accuracy': 0.9, 'loss': 0.3}}, or a pair of these and the number "
            f"of examples, not {score!r}"
        )
    return {name: float(value) for name, value in score.items()}, examples


def _less_is_better(name, lower_is_better):
    known = name in ("loss", "perplexity", "rmse", "mse", "mae") or name.startswith("bits_per_")
    return known or name.endswith(("_loss", "_error")) or name in lower_is_better


def _applied(optimizer):
    """What applies the update: an optimizer's `step`, or the function itself."""
    step = getattr(optimizer, "step", optimizer)
    return getattr(step, "applies", step)  # that of hearsay.wrap is more than the update


@watching_start()
def join(
    config: Union[str, "os.PathLike[str]", Mapping[str, Any]],
    model: Any,
    *,
    optimizer: Any = None,
    learning_rate: _rates.Rate = None,
    set: Optional[Mapping[str, Any]] = None,
    name: Optional[str] = None,
    data: Optional[str] = None,
    iterations_per_epoch: Optional[int] = None,
    iterations: int = 0,
    communicator: Any = None,
    mesh: Any = None,
    data_mesh: Any = None,
    trigger: Optional[Callable[[_core.Observation], Union[float, bool]]] = None,
    graph: Optional[Callable[[int], Iterable[Tuple[int, int]]]] = None,
    log: Optional[Callable[..., Any]] = None,
    job: Optional[str] = None,
) -> Member:
    """Makes this process a member of the job. Collective: all ranks of the job call it, with the same configuration.

    config        the name of a YAML file, or a dictionary of the same shape: sections `exchange`, `topology`,
                  `trigger`, `sparsify`, `report`, and `seed`. `python3 -m hearsay describe NAME` explains every key.
                  A configuration of the program `hearsay` may be one: its `optimizer`, `train`, and `model` and `data`
                  but for their names are the loop's own business, and are left aside with a note
    model         a torch.nn.Module, or numpy arrays of float32 (a mapping of names to arrays, a list, or one). A
                  module's parameters of float32 on the cpu and their gradients become views of one block; those of
                  bfloat16, float16 and float64, and on other devices, keep type and place and are copied, and a
                  bfloat16 model gets a float32 master copy, which the optimizer steps. They stay the same Parameter
                  objects, so that an optimizer may be made before or after. For arrays, `member.parameters` and
                  `member.gradients` are those views. Frozen parameters and buffers may be of
                  any type. What will ever be trained needs a gradient now: freeze it afterwards if it is to rest
                  (its gradient is then None). A parameter that is added, unfrozen or moved to other memory later is a
                  ConfigError of the next step, by its name
    optimizer     the torch optimizer, or a list of them, for exchanges that measure by how far a step moves each
                  parameter (`exchange.correction: {name: drift}`, `quasi_global_momentum`, `trigger: {name: sparq}`),
                  where `member.step` is given a function and not the optimizer. It may have groups, and schedulers
    learning_rate in place of an optimizer that is none of torch's, for steps of plain SGD: a number, or a mapping of
                  parameters' names to numbers
    set           a mapping of dotted keys to values on top of the configuration: {"trigger.horizon": 0.95}. Where one
                  chooses something else, {"exchange.name": "allreduce"}, keys that belonged to the earlier choice are
                  left out with a note
    name, data    what the reports call the model and the data (default: their names in the configuration, or the
                  module's class and "python")
    iterations_per_epoch   steps in which the ranks see the data once: for densities that change by the epoch, and for
                  the reports; default: those of what `member.share` returned and the first step is made with
    iterations    of the whole run, if known: `hearsay watch` then shows how long it takes
    communicator  of mpi4py; default: all ranks of the job
    mesh          where replicas are several processes (`fully_shard`, tensor parallelism, or shards cut by hand): those
                  that hold the same shard as this one, one of every replica. A torch DeviceMesh of one dimension, such
                  as `mesh["replica"]`, or a ProcessGroup of torch.distributed. `member.rank` is then the position
                  there: the number of this replica. Each such group is a job of its own, whose run folder is
                  DIRECTORY/shard-S, S being the smallest of its ranks in torch.distributed. Triggers decide by the
                  norms of shards, not of whole tensors
    data_mesh     then: the processes of this replica that get data of their own from `member.share`, by a DeviceMesh of
                  one dimension or a ProcessGroup. Default: those of `fully_shard`; else none, so that all processes of
                  a replica get the same
    trigger       a function of your own instead of `trigger.name`: gets a `hearsay.Observation` of one parameter and
                  returns the threshold that its `change` has to reach, or a bool (send it or not). Called for every
                  parameter in every step, on every rank: 0.2 µs each beside what it does itself. The other keys of
                  the section (measure, warmup_iterations, maximum_silence …) stay in force
    graph         a function of your own instead of `topology.graph`: gets the number of ranks and returns pairs (i, j)
                  of ranks that are neighbours. Called once on every rank, where it must return the same
    log           called on rank 0, or the first rank that lives, as log({"loss": …, "messages": …, "bytes_sent": …},
                  step=…): `wandb.log` or `mlflow.log_metrics`. Every `report.every_iterations` steps with the step's
                  loss and what that rank has sent until then, and by `Member.evaluate` with what that returns. Numbers
                  that are not known are left out
    job           the name of a job that trains already and that others may join: `train: {on_failure: continue,
                  joins: N}`, started without MPI. This process, which no launcher has started, takes the place of a
                  rank that has died, or one that was vacant (`train.vacant`), and waits for one where there is none.
                  Default: what `python3 -m hearsay launch --join JOB` says (HEARSAY_JOIN)

    A process that joins gets a neighbour's parameters, and frozen parameters and buffers of the first rank; what the
    optimizer keeps (moments, momentum) begins anew, as do trigger and drift correction. Its `member.steps` begin at the
    step of that rank, and what `member.share` deals out at the others' epoch. It is in every collective call that they
    begin after that step, so let a loop that others may join go by `member.steps`.

    All ranks begin with rank 0's parameters, frozen or not, and buffers. Returns a `Member`. Raises ConfigError with
    file, line and column of everything that is wrong, CommunicationError, DataError. From here on an
    exception that nobody catches ends the whole job.
    """
    optimizer = _rates.as_one(optimizer)
    job_to_join = process.job_to_join(job)
    if job_to_join is None:
        process.start()
    if mesh is not None and (communicator is not None or job_to_join is not None):
        raise ConfigError("mesh=… says which processes gossip; leave out communicator=… and job=…, which say it, too")
    group, data_seat = _shards.seats(model, mesh, data_mesh)
    for what, function in (("trigger", trigger), ("graph", graph), ("log", log)):
        if function is not None and not callable(function):
            raise TypeError(f"{what} is a function, not {function!r}")
    if iterations_per_epoch is not None:
        iterations_per_epoch = _whole("iterations_per_epoch", iterations_per_epoch, 1)
    iterations = _whole("iterations", iterations, 0)
    from_file = not hasattr(config, "items")
    settings = [_setting(key, value, f"set={{{key!r}: {value!r}}}") for key, value in (set or {}).items()]
    if name is not None:
        settings.append(_setting("model.name", name, f"name={name!r}"))
    if data is not None:
        settings.append(_setting("data.name", data, f"data={data!r}"))
    if trigger is not None:
        settings.append(_setting("trigger.name", "own", "trigger=…"))
    if graph is not None and job_to_join is not None:
        raise ConfigError("graph=… is not for a job that others join: let topology.graph.path name a list of edges")
    if graph is not None:
        ranks = len(group.ranks) if group else communicator.Get_size() if communicator else process.job.ranks
        edges = _graphs.Edges(graph, ranks)
        settings.append(_setting("topology.graph", {"name": "edge_list", "path": edges.path}, "graph=…"))
    common = {
        "file": os.fspath(cast("os.PathLike[str]", config)) if from_file else None,
        "text": "" if from_file else _yaml(config),
        "model": type(model).__name__ if _blocks.lies_in_torch(model) else "arrays",
        "data": "python",
        "trigger": trigger,
    }
    plan = _core.Plan(set=settings, **common)
    if group is not None:
        plan = _plan_of_shard(plan, group, settings, common)
    if graph is not None:
        plan.yaml = plan.yaml.replace(edges.path, _graphs.KEPT)
        _graphs.require_own(plan.directory)
        if plan.others_may_come:
            raise ConfigError("graph=… is not for a job that others join: let topology.graph.path name a list of edges")
    if job_to_join is None and plan.others_go_on and process.job.outlives_a_rank and process.members:
        raise ConfigError("train.on_failure: continue is for the only member of a program, and this one has another")
    block = _blocks.made_of(model)
    if group is not None and not plan.lockstep:
        _shards.require_no_copies(block.parameters)
    steps = _rates.Steps(plan, block, optimizer, learning_rate, of_use=trigger is not None or plan.serves)
    program = {
        "command": shown(" ".join([os.path.basename(sys.executable), *sys.argv])),
        "versions": _versions(),
        "iterations_per_epoch": iterations_per_epoch or 1,
        "iterations": iterations,
        "buffers": block.described(),
    }
    if job_to_join is None:
        its_job = process.job_of(communicator, group)
        meetings = process.meetings_of(its_job, plan, block)
        core = _core.Member(its_job, meetings, plan, block.replica, signals=process.signals, **program)
        _begin_alike(core, block)
        member = Member(core, meetings, plan, block, steps, log, group.shard if group else None, data_seat)
    else:
        with process.coming_to(job_to_join, plan, block) as (its_job, meetings):
            core = _core.Member(its_job, meetings, plan, block.replica, signals=process.signals, **program)
            epochs = _come_in(core, block)
            member = Member(core, meetings, plan, block, steps, log)
            member._deals.begin_at(epochs)
    member._epoch_known = iterations_per_epoch is not None
    if optimizer is not None and hasattr(optimizer, "step"):
        member._serve_with(optimizer)
    if graph is not None:
        if member.rank == 0:
            process.not_written[os.path.join(member.directory, _graphs.KEPT)] = edges.keep(member.directory)
        edges.close()
    if member._is_first() and job_to_join is None:
        for sentence in core.warnings():
            print(f"hearsay: {shown(sentence)}", file=sys.stderr)
    _cores.share(member._is_first(), process.job.ranks_on_host)
    return member


def _plan_of_shard(plan, group, settings, common):
    """The same with a run folder of this shard's own. `config.yaml` there names the folder of all of them, and so gives
    the same run again."""
    _shards.require_whole_replicas(plan)
    folder = group.folder(plan.directory)
    own = _core.Plan(set=[*settings, _setting("report.directory", folder, "mesh=…")], **common)
    own.yaml = plan.yaml
    return own


def _begin_alike(core, block):
    """All ranks have rank 0's model. Collective."""
    for bytes_of, put_back in block.untrained():
        core.broadcast(bytes_of)
        put_back()
    block.assign()


def _come_in(core, block):
    """Where the others train already: returns when this process has a place and a model. How many epochs are over."""
    core.take_vertex()
    while True:
        calls, meetings, steps, epochs = core.await_admission()
        try:
            for bytes_of, put_back in block.untrained():
                core.receive(bytes_of)
                put_back()
        except RankDied:  # another one lets this process in
            continue
        core.enter(calls, meetings, steps)
        block.assign()
        return epochs


def _whole(what, value, least, end=2**63):
    """A whole number of any type; `end` is the first that is too large, by default for the core."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {value!r}") from None
    if not least <= number < end:
        raise ValueError(f"{what} is a whole number from {least} to {end - 1}, not {number}")
    return number


def _setting(key, value, place):
    """("key=YAML", how messages name it)"""
    return f"{key}={_yaml(value)}", place


def _yaml(value):
    """JSON, which YAML contains; numbers of numpy and paths are what they say."""

    def plain(thing):
        if isinstance(thing, os.PathLike):
            return os.fspath(thing)
        if hasattr(thing, "tolist"):
            return thing.tolist()
        raise ConfigError(f"a configuration has numbers, texts, lists and dictionaries, not {thing!r}")

    return json.dumps(value, indent=1, default=plain)


def _versions():
    versions = {"python": sys.version.split()[0], "numpy": np.__version__}
    if "torch" in sys.modules:
        versions["torch"] = str(sys.modules["torch"].__version__)
    return versions
