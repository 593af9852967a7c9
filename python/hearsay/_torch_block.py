"""A torch module's parameters and gradients in the member's block, and what was true of them at `join`."""
from __future__ import annotations

import functools
import itertools
import operator
from contextlib import contextmanager

import numpy as np

from . import _staged
from ._blocks import Block
from ._shards import is_fully_sharded
from .errors import ConfigError

REQUIRES_GRAD = operator.attrgetter("requires_grad")
VERSION = _staged.VERSION
AGAIN = "change the model before hearsay.join; or call member.leave(), change it, and join again"


class TorchBlock(Block):
    """The `.data` and `.grad` of trainable parameters become views of the block; where they cannot, they are staged.

    What else the model has, frozen parameters and buffers of any type, begins with rank 0's values and stays where it
    is. What was true at `join` is asked again when a step begins; it costs some 0.2 µs a parameter.
    """

    others = ()  # parameters that are trained and that another process of this replica holds in its block

    def __init__(self, module, names=None):
        """`names`: of the trainable parameters that the block has, all by default."""
        import torch

        self.torch, self.module = torch, module
        self.fully_sharded = list(filter(is_fully_sharded, module.modules()))
        self._reshard()
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        trained = {name: tensor for name, tensor in parameters.items() if tensor.requires_grad}
        if names is not None:
            trained = {name: trained[name] for name in names}
        self.frozen = {name: tensor for name, tensor in parameters.items() if not tensor.requires_grad}
        if not trained:
            raise ConfigError("the model has no parameter that needs a gradient")
        for name, tensor in trained.items():
            _require_trainable(torch, name, tensor)
        for name, tensor in {**self.frozen, **buffers}.items():
            _require_bytes(torch, name, tensor)
        _require_own_memory(trained, {**parameters, **buffers})
        super().__init__(trained.keys(), [_staged.local(tensor).shape for tensor in trained.values()])
        self.tensors = list(trained.values())
        reshape = lambda view, shape: view.view(shape)
        self.gradient_tensor = torch.from_numpy(self.flat_gradients)
        self.value_views = self.cut(torch.from_numpy(self.values), reshape)
        self.gradient_views = self.cut(self.gradient_tensor, reshape)
        self.staged = {}  # segment → what keeps it equal
        for segment, (tensor, view) in enumerate(zip(self.tensors, self.value_views)):
            tensor.grad = None
            if _staged.is_needed(torch, tensor):
                self.staged[segment] = _staged.Staged(torch, tensor, view, self.gradient_views[segment])
                continue
            view.copy_(tensor.data)
            tensor.data = view
            tensor.grad = self.gradient_views[segment]
        self.parameters = dict(zip(self.names, self.tensors))
        self.gradients = dict(zip(self.names, self.gradient_views))
        self.has_shards = any(map(_staged.is_shard, self.tensors))
        self.data_ptr = (lambda t: _staged.local(t).data_ptr()) if self.has_shards else torch.Tensor.data_ptr
        self.addresses = list(map(self.data_ptr, self.tensors))
        self.hooks = []
        self.forward_hooks = {}
        self._remember()

    def begin(self, keep_gradients=False):
        self.require_as_at_join()
        if keep_gradients:
            self._keep_gradients()
        else:
            self.gradient_tensor.zero_()
            self.point_to_gradients()
        for staged in self.staged.values():
            staged.forget_gradient(keep_gradients)
            staged.pull()

    def _keep_gradients(self):
        """What the loop has none of is 0."""
        for tensor, view in zip(self.tensors, self.gradient_views):
            if tensor.grad is None:
                view.zero_()
        for tensor, view in self.viewed:
            if tensor.grad is None:
                tensor.grad = view

    def point_to_gradients(self):
        for tensor, view in self.viewed:
            if tensor.grad is not view:
                tensor.grad = view

    # ------------------------------------------------------------------ what is staged

    def _reshard(self):
        """After a pass without gradients, `fully_shard` may have left whole parameters in the place of the shards."""
        for part in self.fully_sharded:
            part.reshard()

    def pull(self):
        self._reshard()
        for staged in self.staged.values():
            staged.pull()

    def push(self):
        for staged in self.staged.values():
            staged.push()

    def assign(self):
        self._reshard()
        for staged in self.staged.values():
            staged.assign()

    def hand_on(self):
        for staged in self.staged.values():
            staged.push()
            staged.hand_back_gradient()

    def gather_edited_gradients(self):
        for staged in self.staged.values():
            staged.gather_edited_gradient()

    @contextmanager
    def applying(self):
        self.point_to_gradients()
        for staged in self.staged.values():
            staged.lend_master()
        try:
            yield
        finally:
            for segment, staged in self.staged.items():
                staged.take_back()
                self._hook_again(segment)

    def saved(self):
        return self.values.copy(), [s.own.clone() for s in self.staged.values() if not s.is_narrow]

    def restore(self, saved):
        values, own = saved
        self.put(values)
        for staged, before in zip((s for s in self.staged.values() if not s.is_narrow), own):
            staged.own.copy_(before)

    def masters(self):
        return [staged.values for staged in self.staged.values() if staged.is_narrow]

    # ------------------------------------------------------------------ what was true at join

    def _remember(self):
        """The model as it is: its parts, in the order of a walk, and which of its parameters need a gradient."""
        self.parts = list(self.module.modules())
        self.dicts = [d for part in self.parts for d in (part._parameters, part._modules)]
        self.structure = self._identities()
        self.asked = list({id(p): p for p in (*self.tensors, *self.module.parameters())}.values())
        self.wanted = list(map(REQUIRES_GRAD, self.asked))
        self.live = [tensor for tensor in self.tensors if tensor.requires_grad]
        pairs = enumerate(zip(self.tensors, self.gradient_views))
        self.viewed = [pair for s, pair in pairs if s not in self.staged and pair[0].requires_grad]
        for tensor in self.tensors:
            if not tensor.requires_grad:
                tensor.grad = None  # or the optimizer's momentum would go on moving it

    def _identities(self):
        """The ids of all parts and parameters. `parts` and `asked` keep these, so that no new one gets such an id."""
        return list(map(id, itertools.chain.from_iterable(map(dict.values, self.dicts))))

    def require_as_at_join(self):
        self._reshard()
        if self._identities() != self.structure or list(map(REQUIRES_GRAD, self.asked)) != self.wanted:
            self._require_no_more_to_train()
            self._remember()
        if list(map(self.data_ptr, self.tensors)) != self.addresses:
            self._name_what_has_moved()

    def _require_no_more_to_train(self):
        own, frozen = set(map(id, [*self.tensors, *self.others])), set(map(id, self.frozen.values()))
        new = {n: p for n, p in self.module.named_parameters() if p.requires_grad and id(p) not in own}
        for names, what in (
            ([n for n, p in new.items() if id(p) in frozen], "was frozen at hearsay.join and needs a gradient now"),
            ([n for n, p in new.items() if id(p) not in frozen], "has come to the model after hearsay.join"),
        ):
            if names:
                raise ConfigError(
                    f"the parameter {_listed(names)} {what}: nobody exchanges it, and every rank would train its own. "
                    f"Have all that will ever be trained need a gradient when you call hearsay.join, and freeze after "
                    f"it what is to rest; or {AGAIN}"
                )

    def _name_what_has_moved(self):
        for segment, (name, tensor, address) in enumerate(zip(self.names, self.tensors, self.addresses)):
            if self.data_ptr(tensor) != address:
                where = "where it was at hearsay.join" if segment in self.staged else "in the member's block any more"
                raise ConfigError(
                    f"the parameter '{name}' does not lie {where} (it is {_kind(tensor)} now): "
                    f"something has replaced its memory (model.to(...), parameter.data = ...). Do that before "
                    f"hearsay.join; model.load_state_dict copies and is fine"
                )

    # ------------------------------------------------------------------ gradients

    def gather_gradients(self):
        for segment in range(len(self.tensors)):
            self.gather_gradient(segment)

    def gather_gradient(self, segment):
        """Where the loop has replaced .grad (zero_grad(set_to_none=True) does), its values move into the block."""
        tensor, view = self.tensors[segment], self.gradient_views[segment]
        if tensor.grad is view or not tensor.requires_grad:
            return
        if segment in self.staged:
            self.staged[segment].gather_gradient()
            return
        if tensor.grad is not None:
            view.copy_(tensor.grad)
        tensor.grad = view

    def versions(self):
        return list(map(VERSION, self.live))

    def has_gradients(self):
        elsewhere = any(tensor.grad is not view for tensor, view in self.viewed)
        return elsewhere or any(s.tensor.grad is not None for s in self.staged.values()) or super().has_gradients()

    def on_gradient(self, ready):
        if self.has_shards:  # `fully_shard` writes gradients when it likes, and what is sent early must stay
            return False
        if not self.hooks:
            self.ready = ready
            self.hooks = [self._hooked(segment) for segment in range(len(self.tensors))]
        return True

    def _hooked(self, segment):
        """(what must be kept with the hook, the hook)"""
        tensor = self.tensors[segment]

        def arrived(*_):
            self.gather_gradient(segment)
            self.ready(segment)

        if hasattr(tensor, "register_post_accumulate_grad_hook"):  # torch 2.1
            return None, tensor.register_post_accumulate_grad_hook(arrived)
        accumulator = tensor.expand_as(tensor).grad_fn.next_functions[0][0]
        return accumulator, accumulator.register_hook(arrived)

    def _hook_again(self, segment):
        """Torch gives a parameter a new accumulator where its type has changed meanwhile."""
        if self.hooks and self.hooks[segment][0] is not None and self.tensors[segment].requires_grad:
            self.hooks[segment][1].remove()
            with self.torch.enable_grad():
                self.hooks[segment] = self._hooked(segment)

    def on_inputs(self, seen):
        self.forget_hook("inputs")
        if seen is not None:

            def given(*inputs):
                if self.torch.is_grad_enabled():  # else the model is looked at
                    seen([_values(self.torch, tensor) for tensor in _tensors_in(inputs)])

            self.forward_hooks["inputs"] = self._before_forward(given)

    def on_training_pass(self, begins):
        """Calls `begins()` before the module is gone through in training mode."""

        def entered(*_):
            if self.module.training and self.torch.is_grad_enabled():
                begins()

        self.forward_hooks["training pass"] = self._before_forward(entered)

    def _before_forward(self, call):
        """Before all other hooks: that of `fully_shard` puts whole parameters there."""
        hook = _ForwardHook(self.torch, call)
        try:
            return self.module.register_forward_pre_hook(hook, prepend=True, with_kwargs=True)
        except TypeError:  # torch 1
            return self.module.register_forward_pre_hook(hook)

    def forget_hook(self, name):
        if name in self.forward_hooks:
            self.forward_hooks.pop(name).remove()

    def release(self):
        for _, hook in self.hooks:
            hook.remove()
        self.hooks = []
        for name in list(self.forward_hooks):
            self.forget_hook(name)

    # ------------------------------------------------------------------ frozen parameters and buffers

    def _others(self):
        return {**self.frozen, **dict(self.module.named_buffers())}

    def described(self):
        others = "".join(f"{name} {t.dtype} {list(t.shape)}\n" for name, t in self._others().items())
        return others + "".join(f"{name} {t.dtype}\n" for name, t in self.parameters.items())

    def untrained(self):
        for tensor in self._others().values():
            if tensor.numel() > 0:
                there = _distinct(_staged.local(tensor).data)
                here = there.cpu().contiguous()
                yield _bytes(self.torch, here), lambda there=there, here=here: there.copy_(here)

    def float_buffers(self):
        self.require_as_at_join()
        return FloatBuffers(self.torch, [t for t in self.module.buffers() if t.is_floating_point() and t.numel() > 0])

    def kept(self, array):
        return self.torch.from_numpy(array)


class _ForwardHook:
    """Calls `call(inputs, named)`. Copies of the module, deep or pickled ones, do not have it: they are no member's."""

    def __init__(self, torch, call):
        self.call = call
        self.is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", bool)  # torch 2.1

    def __call__(self, module, inputs, named=None):
        if not self.is_compiling():  # a compiled model would have this hook compiled in
            self.call(inputs, named)

    def __reduce__(self):
        return functools.partial, (_nothing,)


def _nothing(*_):
    pass


class FloatBuffers:
    """Buffers of any float type, whose values can be replaced for a while."""

    def __init__(self, torch, tensors):
        self.torch, self.tensors = torch, [_distinct(_staged.local(tensor).data) for tensor in tensors]
        self.before = [tensor.clone() for tensor in self.tensors]

    def values(self):
        """The values of all tensors, as float64."""
        flat = [t.to("cpu", self.torch.float64).reshape(-1).numpy() for t in self.tensors]
        return np.concatenate(flat or [np.empty(0)])

    def put(self, values):
        begin = 0
        for tensor in self.tensors:
            part = self.torch.from_numpy(values[begin : begin + tensor.numel()])
            tensor.copy_(part.reshape(tensor.shape))
            begin += tensor.numel()

    def restore(self):
        for tensor, before in zip(self.tensors, self.before):
            tensor.copy_(before)


def _distinct(tensor):
    """A view of the values that have memory of their own: an expanded tensor has one for many."""
    for dimension, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dimension] > 1:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def _bytes(torch, tensor):
    """The bytes of a contiguous tensor; a single value may have any stride."""
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8).numpy()


def _tensors_in(thing):
    """All of them, however deep they lie in tuples, lists and mappings."""
    if hasattr(thing, "data_ptr"):
        yield thing
    elif isinstance(thing, (tuple, list)):
        for part in thing:
            yield from _tensors_in(part)
    elif hasattr(thing, "values") and hasattr(thing, "keys"):
        yield from _tensors_in(list(thing.values()))


def _values(torch, tensor):
    """As bytes; of one that has no plain memory, none."""
    if _unusual(torch, tensor) or tensor.numel() == 0:
        return np.empty(0, np.uint8)
    return _bytes(torch, tensor.detach().cpu().contiguous())


def _listed(names):
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"'{names[0]}'{more}"


def _is_lazy(torch, tensor):
    return isinstance(tensor, (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer))


def _kind(tensor):
    return f"{tensor.dtype} on {tensor.device}"


def _unusual(torch, tensor):
    """(what it is, what to do) of a tensor that has no plain memory, or nothing."""
    if _is_lazy(torch, tensor):
        return "lazy and has no shape yet", "put one batch through the model before hearsay.join"
    if tensor.layout != torch.strided:
        return f"sparse ({tensor.layout})", "make it dense before hearsay.join: tensor.to_dense()"
    if tensor.device.type == "meta":
        return "on the device meta, which has no values", "call model.to_empty(device='cpu') and load weights before"
    if tensor.is_quantized:
        return f"quantised ({tensor.dtype})", "keep its integers (tensor.int_repr()), scale and zero point as buffers"
    return None


def _require_trainable(torch, name, tensor):
    unusual = _unusual(torch, tensor)
    if unusual:
        raise ConfigError(f"the parameter '{name}' is {unusual[0]}, and Hearsay cannot train it: {unusual[1]}")
    if tensor.is_complex():
        raise ConfigError(
            f"the parameter '{name}' is {_kind(tensor)}; Hearsay trains real numbers: hold it as a float32 parameter "
            f"with the real and imaginary part last, and use torch.view_as_complex of that in the forward pass"
        )
    if tensor.dtype not in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        raise ConfigError(
            f"the parameter '{name}' is {_kind(tensor)}; Hearsay trains parameters of torch.float32, float64, bfloat16 "
            f"and float16: convert it before hearsay.join, or freeze it (requires_grad_(False))"
        )
    if _staged.is_shard(tensor) and tensor.dtype in (torch.bfloat16, torch.float16):
        raise ConfigError(
            f"the parameter '{name}' is {_kind(tensor)} and sharded; a shard has no master copy: keep it float32, "
            f"and compute in {tensor.dtype} by autocast or fully_shard(…, mp_policy=MixedPrecisionPolicy(…))"
        )


def _require_bytes(torch, name, tensor):
    unusual = _unusual(torch, tensor)
    if unusual:
        raise ConfigError(
            f"'{name}', which is not trained, is {unusual[0]}, so that the ranks cannot begin with the same: "
            f"{unusual[1]}"
        )


def _require_own_memory(trained, named):
    """Two Parameters over the same memory would be two that are not tied any more."""
    spans = []
    for name, tensor in ((name, _staged.local(tensor)) for name, tensor in named.items()):
        if tensor.numel() > 0:
            length = tensor.numel() if tensor.is_contiguous() else 1
            spans.append((tensor.data_ptr(), tensor.data_ptr() + length * tensor.element_size(), name))
    spans.sort()
    for (_, end, one), (begin, _, other) in zip(spans, spans[1:]):
        if begin < end and (one in trained or other in trained):
            raise ConfigError(
                f"'{one}' and '{other}' share memory, and training would part them. Tie them as one Parameter "
                f"(a.weight = b.weight), or give each its own (tensor.clone()), before hearsay.join"
            )
