"""Parameters and gradients as views of the member's block: of numpy arrays here, of a torch module in _torch_block.py.

The block is memory of the core: one stretch of 4-byte floats for the parameters and one for the gradients. Triggers
decide about its segments, which are the parameter tensors.
"""
from __future__ import annotations

import math
import operator
import sys
from contextlib import contextmanager

import numpy as np

from . import _core
from .errors import ConfigError


def lies_in_torch(model):
    """Whether `model` is a torch module; torch is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def made_of(model):
    """The block that holds `model`: a torch module, a mapping of names to arrays, a sequence of arrays, or one. A block
    is one already."""
    if isinstance(model, Block):
        return model
    if lies_in_torch(model):
        from ._torch_block import TorchBlock

        return TorchBlock(model)
    if isinstance(model, np.ndarray):
        return ArrayBlock({"x": model})
    if hasattr(model, "items"):
        return ArrayBlock(dict(model.items()))
    if isinstance(model, (list, tuple)):
        return ArrayBlock({f"x{i}": array for i, array in enumerate(model)})
    raise ConfigError(
        f"hearsay.join takes a torch.nn.Module, or arrays (a mapping of names to numpy arrays, a list of them, or "
        f"one), not a {type(model).__name__}"
    )


class Block:
    """The core's replica, and where its segments begin."""

    def __init__(self, names, shapes):
        self.names = list(names)
        self.shapes = [tuple(int(n) for n in shape) for shape in shapes]
        self.lengths = [math.prod(shape) for shape in self.shapes]
        self.replica = _core.Replica(self.names, [list(shape) for shape in self.shapes])
        self.values = self.replica.values
        self.flat_gradients = self.replica.gradients

    def cut(self, flat, reshape):
        """One view a segment of a flat block."""
        views, offset = [], 0
        for shape, length in zip(self.shapes, self.lengths):
            views.append(reshape(flat[offset : offset + length], shape))
            offset += length
        return views

    # What a step asks of any block.
    def begin(self, keep_gradients=False):
        """`keep_gradients`: they are what the loop has made until now; else they are 0."""
        self.require_as_at_join()
        if not keep_gradients:
            self.flat_gradients.fill(0.0)

    def require_as_at_join(self):
        """Raises ConfigError, with names, where what is trained is not what has joined any more."""

    def point_to_gradients(self):
        """What the optimizer looks at is what lies in the block."""

    def gather_gradients(self):
        """Before the gradients are used: all of them lie in the block."""
        self.require_as_at_join()

    def versions(self):
        """How often each segment's values have been written to, where somebody counts."""
        return []

    def has_gradients(self):
        """Whether a backward pass has been made since the last step began, as far as can be seen."""
        return bool(self.flat_gradients.any())

    def on_gradient(self, ready):
        """Calls `ready(segment)` during backward passes; False where nobody can tell."""
        return False

    # Where the model has memory of its own besides (staged parameters), both are kept equal.
    def pull(self):
        """The block has what the loop has written into the model."""

    def push(self):
        """The model has what the core has written into the block."""

    def assign(self):
        """The model has the block's values, whatever it had."""

    def hand_on(self):
        """The model has the block's values and gradients: the loop goes on with them."""

    def gather_edited_gradients(self):
        """After `hand_on`: the block has what the loop has made of the gradients since, clipped ones for example."""

    @contextmanager
    def applying(self):
        """Inside, an optimizer finds what it is to step; afterwards the block has it."""
        yield

    def spread(self):
        """Where several processes hold the whole replica: all have what the block has. Collective over these."""

    def step_alone(self, apply):
        """The optimizer's step after the member has left: what `apply()` returns."""
        return apply()

    def saved(self):
        """For `restore`."""
        return self.values.copy()

    def restore(self, saved):
        self.put(saved)

    def put(self, values):
        """Block and model have these."""
        self.values[:] = values
        self.assign()

    def masters(self):
        """Values of the block that the model has rounded: views."""
        return []

    def on_inputs(self, seen):
        """Calls `seen([values, …])` with what the model is given, where somebody can tell; None: no more."""

    def release(self):
        """The member has left."""

    # What belongs to the model and is not in the block.
    def described(self):
        """Names, types and shapes, a line each: the same on all ranks."""
        return ""

    def untrained(self):
        """All of it: (its bytes, a function that puts them back where they were) each."""
        return []

    def float_buffers(self):
        """What is averaged with the parameters."""
        self.require_as_at_join()
        return Buffers()

    def kept(self, array):
        """As what a checkpoint of this model has."""
        return array


class Buffers:
    """None."""

    def values(self):
        return np.empty(0)

    def put(self, values):
        pass

    def restore(self):
        pass


class ArrayBlock(Block):
    """Numpy arrays: copied into the block once; what the loop uses from then on are the views."""

    def __init__(self, arrays):
        if not arrays:
            raise ConfigError("hearsay.join: there is no array to train")
        for name, array in arrays.items():
            if not isinstance(name, str):
                raise ConfigError(f"hearsay.join: the name of an array is a text, such as '{name}', not {name!r}")
            if not isinstance(array, np.ndarray) or array.dtype != np.float32:
                kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
                raise ConfigError(f"the array '{name}' is {kind}; Hearsay trains numpy arrays of float32")
        super().__init__(arrays.keys(), [array.shape for array in arrays.values()])
        reshape = lambda view, shape: view.reshape(shape)
        self.parameters = dict(zip(self.names, self.cut(self.values, reshape)))
        self.gradients = dict(zip(self.names, self.cut(self.flat_gradients, reshape)))
        self.own_parameters, self.own_gradients = dict(self.parameters), dict(self.gradients)
        for name, array in arrays.items():
            self.parameters[name][...] = array

    def require_as_at_join(self):
        for what, here, views in (("parameters", self.parameters, self.own_parameters),
                                  ("gradients", self.gradients, self.own_gradients)):
            if here.keys() != views.keys() or not all(map(operator.is_, here.values(), views.values())):
                name = next((n for n in {**views, **here} if here.get(n) is not views.get(n)), next(iter(views)))
                raise ConfigError(
                    f"member.{what}['{name}'] is another array than the member's: an assignment has replaced it, and "
                    f"nobody exchanges that one. Write into it: member.{what}['{name}'][...] = values"
                )
