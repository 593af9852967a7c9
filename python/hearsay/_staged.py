"""A parameter that cannot be a view of the block, which is of 4-byte floats in the processor's memory: staged.

The block has its values as float32, and both are kept equal by one rule each way:

    narrower than float32 (bfloat16, float16)   The float32 values are the *master copy*. Exchanges mix the master, the
                                                optimizer steps the master, and the model has it rounded. A step that
                                                is smaller than the model's spacing is not lost.
    float64, or float32 elsewhere               The model's values are the ones that count; the block has them rounded.
                                                By as much as an exchange moves the block, it moves the model.
    a shard of a DTensor                        As float32 elsewhere: its memory belongs to who has sharded it.

What the loop writes into the model counts in both cases: elements that it leaves alone keep their master.
"""
from __future__ import annotations

import math
import operator

VERSION = operator.attrgetter("_version")


def is_shard(tensor):
    """Whether it is a DTensor, whose values are spread over several processes."""
    return hasattr(tensor, "to_local")


def is_cut(tensor):
    """Whether no other process of its mesh holds any of the same values."""
    return is_shard(tensor) and all(
        placement.is_shard() or tensor.device_mesh.size(dimension) == 1
        for dimension, placement in enumerate(tensor.placements)
    )


def local(tensor):
    """What this process holds of it, over the same memory."""
    return tensor.detach().to_local() if is_shard(tensor) else tensor


def version(tensor):
    """How often it has been written to. Unlike itself for a DTensor, whose count misses what clipping and optimizers
    write (torch._foreach_…): it counts as written to."""
    return math.nan if is_shard(tensor) else VERSION(tensor)


def is_needed(torch, tensor):
    """Whether it cannot be a view."""
    return tensor.dtype != torch.float32 or tensor.device.type != "cpu" or is_shard(tensor)


class Staged:
    """One parameter.

    tensor    torch's Parameter
    values    its float32 values in the block, of its shape; `gradient` likewise
    """

    def __init__(self, torch, tensor, values, gradient):
        self.torch, self.tensor, self.values, self.gradient = torch, tensor, values, gradient
        self.own = local(tensor).data  # the same memory; what is written through it counts as nobody's edit
        self.is_narrow = tensor.dtype in (torch.bfloat16, torch.float16)
        values.copy_(self.own)
        if not self.is_narrow:
            self.master = self.own
        elif tensor.device.type == "cpu":
            self.master = values
        else:
            self.master = self.own.to(torch.float32)
        self.seen = version(tensor)
        self.gathered = None, 0  # the gradient that lies in the block, and its version then
        self.handed_back = False  # the loop has what the core has made of it in this step
        self.kept_gradient = None

    @property
    def trains(self):
        return self.tensor.requires_grad

    # ------------------------------------------------------------------ values

    def pull(self):
        """The block has what the loop has written into the model since."""
        if version(self.tensor) == self.seen:
            return
        self.seen = version(self.tensor)
        if self.is_narrow:
            rounded = self.master.to(self.own.dtype)
            self.master.copy_(self.torch.where(self.own == rounded, self.master, self.own.to(self.torch.float32)))
        self._block_from_master()

    def push(self):
        """The model has what the core has written into the block."""
        if self.own.dtype == self.torch.float64:
            self.own += self.values.to(self.own) - self.own.to(self.torch.float32).to(self.own)
            self._block_from_master()
            return
        self._master_from_block()
        if self.is_narrow:
            self.own.copy_(self.master)

    def assign(self):
        """The model has the block's values, whatever it had."""
        self.own.copy_(self.values)
        if self.is_narrow:
            self._master_from_block()

    def _block_from_master(self):
        if self.master is not self.values:
            self.values.copy_(self.master)

    def _master_from_block(self):
        if self.master is not self.values:
            self.master.copy_(self.values)

    # ------------------------------------------------------------------ gradients

    def forget_gradient(self, keep=False):
        """`keep`: the loop's stays; it is gathered anew."""
        if self.trains and not keep:
            self.tensor.grad = None
        self.gathered = None, 0
        self.handed_back = False

    def gather_gradient(self):
        """The block has the gradient as the loop has made it. What was gathered may be another by now: all ranks'."""
        gradient = self.tensor.grad
        if gradient is None or (gradient is self.gathered[0] and version(gradient) == self.gathered[1]):
            return
        if is_shard(gradient) and gradient.placements != self.tensor.placements:
            gradient = self.tensor.grad = gradient.redistribute(placements=self.tensor.placements)
        self.gradient.copy_(local(gradient))
        self.gathered = gradient, version(gradient)

    def hand_back_gradient(self):
        """The loop has what the core has made of the gradient."""
        if not self.trains:
            return
        if self.tensor.grad is None:
            self.tensor.grad = self.torch.zeros_like(self.tensor.detach())
        whole = self.tensor.grad
        gradient = local(whole)
        if gradient.dtype == self.torch.float64:
            gradient += self.gradient.to(gradient) - gradient.to(self.torch.float32).to(gradient)
        else:
            gradient.copy_(self.gradient)
        self.gathered = whole, version(whole)
        self.handed_back = True

    def gather_edited_gradient(self):
        """What the loop has made of what was handed back. Where nothing was, the block's is newer."""
        if self.handed_back:
            self.gather_gradient()

    # ------------------------------------------------------------------ the optimizer's step

    def lend_master(self):
        """The optimizer finds the master in the parameter, and the float32 gradient."""
        if not self.is_narrow:
            self.push()
            self.hand_back_gradient()
            return
        self._master_from_block()
        if self.trains:
            self.kept_gradient = self.tensor.grad
            self._replace(self.master, self.gradient.to(self.master.device))

    def take_back(self):
        """The block has what the optimizer has made of it; the model has it after the next `push`."""
        if self.is_narrow and self.trains:
            self._replace(self.own, self.kept_gradient)
            self.kept_gradient = None
        self.seen = version(self.tensor)
        self._block_from_master()

    def _replace(self, values, gradient):
        self.tensor.grad = None  # torch wants it to be of the values' type at any time
        self.tensor.data = values
        self.tensor.grad = gradient
