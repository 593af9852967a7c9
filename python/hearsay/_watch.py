"""What a loop does that makes its ranks train alone, or twice: noticed, and said once, by rank 0.

Nothing is said of gradient accumulation, closures, `load_state_dict`, or edits now and then: those are legitimate.
"""
from __future__ import annotations

import functools
import sys
import zlib

import numpy as np

MANY_CHANGES = 4  # of every parameter between two steps: more than weights that are loaded, or exchanged for an average
GAPS_IN_A_ROW = 3  # between steps in which every parameter has changed
MOST_VALUES = 1 << 20  # of a gradient, or an input, that are compared
STEPS_COMPARED = 4  # whose inputs are: fewer may agree by chance where a batch is an example of few


class Watch:
    """Watches one member's loop. A step costs it 0.1 µs a parameter."""

    def __init__(self, block, rank, ranks, speaks):
        self.block, self.rank, self.ranks, self.speaks = block, rank, ranks, speaks
        self.told = set()
        self.versions = block.versions()
        self.values_at_join = self._sample(block.values)
        self.first_gradient, self.arrived = None, 0
        self.gaps = 0
        self.inputs, self.expects_input = [], False  # a hash a step
        if ranks > 1:
            block.on_inputs(self.sees)

    def begins(self):
        self.expects_input = True
        changes = self._changes()
        self.gaps = self.gaps + 1 if changes > 0 else 0
        if changes >= MANY_CHANGES or self.gaps >= GAPS_IN_A_ROW:
            self._tell_of_training_outside()
        self.versions = self.block.versions()

    def arrives(self, segment):
        """This segment's gradient is ready, and is this rank's until it is sent."""
        if self.first_gradient is None:
            values = np.asarray(self.block.gradients[self.block.names[segment]]).reshape(-1)
            if values.any():
                self.arrived ^= self._sample(values)

    def sees(self, tensors):
        """The model is given these."""
        if not self.expects_input:
            return
        self.expects_input = False
        self.inputs.append(0)
        for values in tensors:
            self.inputs[-1] = self._sample(values, self.inputs[-1])
        if len(self.inputs) == STEPS_COMPARED:
            self.block.on_inputs(None)

    def exchanges(self):
        """All gradients are ready; those that have arrived may be other ranks' as well by now."""
        if self._changes() > 0:
            self._tell(
                "inside",
                "the parameters have changed inside of a step before its gradients were exchanged: an optimizer's step "
                "there is one that every rank makes alone. Hand the optimizer to member.step(optimizer), or call "
                "step.exchange() before optimizer.step()",
            )
        if self.first_gradient is None:
            gradient = self.block.flat_gradients
            self.first_gradient = self.arrived or (self._sample(gradient) if gradient.any() else -1 - self.rank)

    def stepped(self):
        self.versions = self.block.versions()

    def sums_up(self, steps, distance, same_on_all, deals):
        """Collective: looks at all the steps together. `distance`: between the ranks; `same_on_all(value)`: whether it
        is, on ranks where it is not None; `deals`: what `member.share` has dealt out."""
        trained = self.block.has_gradients() and self._sample(self.block.values) != self.values_at_join
        if steps == 0 and (trained or distance > 0):
            self._tell(
                "alone",
                "the parameters have changed, but member.step was never called: what a rank trains it trains alone. "
                "Make every step `with member.step(optimizer) as step:`",
            )
        elif self._changes() >= MANY_CHANGES:
            self._tell_of_training_outside()
        unknown = -1 - self.rank  # unlike any other rank's
        same_gradient = same_on_all(unknown if self.first_gradient is None else self.first_gradient)
        same_inputs = same_on_all(self._hash_of_inputs() or unknown)
        if same_gradient or same_inputs:
            same = "the same gradient in the first step" if same_gradient else "the same inputs"
            self._tell_of_same_data(same, deals)
        if not same_on_all(deals.mark()):
            self._tell(
                "draws",
                "a sampler has drawn other examples on some ranks than on others, so that their shares overlap: let it "
                "draw by torch's, numpy's or Python's global random numbers or by a generator that is an attribute of "
                "its own, or by no random numbers; member.share gives all ranks the same ones",
            )

    def _hash_of_inputs(self):
        """None where they say nothing: there are too few, or they are always the same, which is no data."""
        if len(self.inputs) < STEPS_COMPARED or len(set(self.inputs)) == 1:
            return None
        return zlib.crc32(repr(self.inputs).encode())

    def _tell_of_same_data(self, what, deals):
        remedy = (
            "go through what member.share(loader) returns, not through the loader"
            if deals.asked
            else "deal it out: for batch in member.share(loader)"
        )
        self._tell("same data", f"all ranks had {what}: they train on the same data; {remedy}")

    def _tell_of_training_outside(self):
        self._tell(
            "outside",
            "all parameters change between the steps of member.step, as by an optimizer: such steps every rank makes "
            "alone. Hand the optimizer to member.step(optimizer), and make every training step there",
        )

    def _changes(self):
        """How often every parameter has been written to since the last look, as torch counts."""
        now = self.block.versions()
        return min(map(int.__sub__, now, self.versions), default=0) if len(now) == len(self.versions) else 0

    def _sample(self, values, before=0):
        return zlib.crc32(values[:: max(1, len(values) // MOST_VALUES)].tobytes(), before)

    def _tell(self, what, words):
        if self.ranks > 1 and self.speaks and what not in self.told:
            print(f"hearsay: warning: {words}", file=sys.stderr, flush=True)
        self.told.add(what)


class StepForbidden:
    """While it is entered, `optimizer.step()` is an error: whoever has entered it makes that step."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.guard = None

    def enter(self):
        step = getattr(self.optimizer, "step", None)
        if step is None:
            return
        self.before = getattr(self.optimizer, "__dict__", {}).get("step")  # a learning rate schedule's, or none

        @functools.wraps(step)
        def guard(*_, **__):
            raise RuntimeError(
                "optimizer.step() was called inside of member.step(optimizer), whose end calls it: that makes twice "
                "the step. Take that call out; or hand over what makes the step, as in member.step(lambda: "
                "scaler.step(optimizer)); or write member.step() and call step.exchange() before optimizer.step()"
            )

        try:
            self.optimizer.step = guard
        except AttributeError:  # it has slots
            return
        self.guard = guard

    def exit(self):
        if self.guard is None or self.optimizer.__dict__.get("step") is not self.guard:
            return
        if self.before is None:
            del self.optimizer.step
        else:
            self.optimizer.step = self.before
        self.guard = None
