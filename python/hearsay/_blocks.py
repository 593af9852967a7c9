"""Parameters and gradients as views of the member's block: of a torch module, or of numpy arrays.

The block is memory of the core: one stretch of 4-byte floats for the parameters and one for the gradients. Triggers
decide about its segments, which are the parameter tensors.
"""
from __future__ import annotations

import math
import sys

import numpy as np

from . import _core
from .errors import ConfigError


def lies_in_torch(model):
    """Whether `model` is a torch module; torch is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def made_of(model):
    """The block that holds `model`: a torch module, a mapping of names to arrays, a sequence of arrays, or one."""
    if lies_in_torch(model):
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


class _Block:
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
    def begin(self):
        self.flat_gradients.fill(0.0)

    def gather_gradients(self):
        """Before the gradients are used: all of them lie in the block."""

    def on_gradient(self, ready):
        """Calls `ready(segment)` during backward passes; False where nobody can tell."""
        return False

    def other_state(self):
        """What belongs to the model and is not in the block, as writable arrays and what puts them back."""
        return []

    def averaged_state(self):
        return []

    def kept(self, array):
        """As what a checkpoint of this model has."""
        return array


class ArrayBlock(_Block):
    """Numpy arrays: copied into the block once; what the loop uses from then on are the views."""

    def __init__(self, arrays):
        if not arrays:
            raise ConfigError("hearsay.join: there is no array to train")
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray) or array.dtype != np.float32:
                kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
                raise ConfigError(f"the array '{name}' is {kind}; Hearsay trains numpy arrays of float32")
        super().__init__(arrays.keys(), [array.shape for array in arrays.values()])
        reshape = lambda view, shape: view.reshape(shape)
        self.parameters = dict(zip(self.names, self.cut(self.values, reshape)))
        self.gradients = dict(zip(self.names, self.cut(self.flat_gradients, reshape)))
        for name, array in arrays.items():
            self.parameters[name][...] = array


class TorchBlock(_Block):
    """A torch module: its trainable parameters' `.data` and `.grad` become views of the block."""

    def __init__(self, module):
        import torch

        self.torch, self.module = torch, module
        seen, named, self.others = set(), [], []
        for name, tensor in module.named_parameters():
            if id(tensor) in seen:
                continue
            seen.add(id(tensor))
            if tensor.requires_grad:
                named.append((name, tensor))
            else:
                self.others.append(tensor)
        self.others += [tensor for _, tensor in module.named_buffers()]
        if not named:
            raise ConfigError("the model has no parameter that needs a gradient")
        for name, tensor in named:
            if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
                raise ConfigError(
                    f"the parameter '{name}' is {tensor.dtype} on {tensor.device}; Hearsay trains parameters of "
                    f"torch.float32 on the cpu: call model.float().cpu() before hearsay.join"
                )
        super().__init__([name for name, _ in named], [tensor.shape for _, tensor in named])
        self.tensors = [tensor for _, tensor in named]
        reshape = lambda view, shape: view.view(shape)
        self.gradient_tensor = torch.from_numpy(self.flat_gradients)
        self.value_views = self.cut(torch.from_numpy(self.values), reshape)
        self.gradient_views = self.cut(self.gradient_tensor, reshape)
        with torch.no_grad():
            for tensor, view, gradient in zip(self.tensors, self.value_views, self.gradient_views):
                view.copy_(tensor)
                tensor.grad = None
                tensor.data = view
                tensor.grad = gradient
        self.parameters = dict(zip(self.names, self.tensors))
        self.gradients = dict(zip(self.names, self.gradient_views))
        self.addresses = [view.data_ptr() for view in self.value_views]
        self.hooks = []

    def begin(self):
        for name, tensor, address in zip(self.names, self.tensors, self.addresses):
            if tensor.data_ptr() != address:
                raise RuntimeError(
                    f"the parameter '{name}' does not lie in the member's block any more: something has replaced its "
                    f"memory (model.to(...), parameter.data = ...). Do that before hearsay.join; "
                    f"model.load_state_dict copies and is fine"
                )
        self.gradient_tensor.zero_()
        for tensor, view in zip(self.tensors, self.gradient_views):
            if tensor.grad is not view:
                tensor.grad = view

    def gather_gradients(self):
        for segment in range(len(self.tensors)):
            self.gather_gradient(segment)

    def gather_gradient(self, segment):
        """Where the loop has replaced .grad (zero_grad(set_to_none=True) does), its values move into the block."""
        tensor, view = self.tensors[segment], self.gradient_views[segment]
        if tensor.grad is view:
            return
        if tensor.grad is not None:
            view.copy_(tensor.grad)
        tensor.grad = view

    def on_gradient(self, ready):
        if self.hooks:
            return True
        for segment, tensor in enumerate(self.tensors):

            def arrived(*_, segment=segment):
                self.gather_gradient(segment)
                ready(segment)

            if hasattr(tensor, "register_post_accumulate_grad_hook"):  # torch 2.1
                self.hooks.append(tensor.register_post_accumulate_grad_hook(arrived))
            else:
                accumulator = tensor.expand_as(tensor).grad_fn.next_functions[0][0]
                self.hooks.append((accumulator, accumulator.register_hook(arrived)))
        return True

    def other_state(self):
        for tensor in self.others:
            if tensor.numel() == 0:
                continue
            here = tensor.detach().contiguous()
            yield here.numpy().reshape(-1).view(np.uint8), lambda tensor=tensor, here=here: tensor.data.copy_(here)

    def averaged_state(self):
        return [t for t in self.others if t.dtype == self.torch.float32 and not t.requires_grad and t.numel() > 0]

    def kept(self, array):
        return self.torch.from_numpy(array)
