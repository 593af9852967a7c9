"""How far a step moves each parameter: exchanges that measure by it are told before every step.

The steps of an optimizer are known by its class, and its numbers are read from its groups whenever they are needed:
a schedule may change them in every step, and groups have rates of their own. What is not known is never taken for 0.
"""
from __future__ import annotations

import math
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .errors import ConfigError

Rate = Union[None, float, Mapping[str, float]]
# Learning rate, momentum, dampening, whether it climbs; and, where gradients are divided by the root of their squares,
# what the mean of these forgets (1: a sum), what is added to the root, and whether the mean begins with 0 as it is.
Response = Tuple[float, float, float, bool, Optional[Tuple[float, float, bool]]]


_PLAIN: Response = (0.0, 0.0, 0.0, False, None)


class Optimizers:
    """Several optimizers as one: each steps parameters of its own."""

    def __init__(self, parts: Sequence[Any]):
        self.parts = tuple(parts)

    def step(self) -> None:
        for part in self.parts:
            part.step()

    @property
    def param_groups(self) -> List[Any]:
        return [group for part in self.parts for group in part.param_groups]


def as_one(optimizer: Any, before: Any = None) -> Any:
    """`optimizer`, or those of a list as one; `before` where it is just that."""
    if not isinstance(optimizer, (list, tuple)):
        return optimizer
    same = isinstance(before, Optimizers) and len(before.parts) == len(optimizer)
    return before if same and all(a is b for a, b in zip(before.parts, optimizer)) else Optimizers(optimizer)


def parts_of(optimizer: Any) -> Sequence[Any]:
    return optimizer.parts if isinstance(optimizer, Optimizers) else (optimizer,)


def _sgd(group) -> Response:
    momentum = float(group["momentum"])
    dampening = float(group["dampening"]) if momentum > 0 else 0.0  # torch dampens momentum only
    return float(group["lr"]), momentum, dampening, group.get("maximize", False), None


def _adam(group) -> Response:
    first, second = (float(beta) for beta in group["betas"])
    return float(group["lr"]), first, first, group.get("maximize", False), (second, float(group["eps"]), False)


def _rmsprop(group) -> Optional[Response]:
    if group["centered"]:  # the root is of a variance, which may come to nothing
        return None
    squares = float(group["alpha"]), float(group["eps"]), True
    return float(group["lr"]), float(group["momentum"]), 0.0, group.get("maximize", False), squares


def _adagrad(group) -> Response:
    return float(group["lr"]), 0.0, 0.0, group.get("maximize", False), (1.0, float(group["eps"]), False)


def _muon(group) -> Callable[[Sequence[int]], Response]:
    """That of an optimizer which divides the gradients of a matrix by their root mean square."""
    momentum, adjusts = float(group["momentum"]), group.get("adjust_lr_fn")

    def response(shape):
        rows, columns = shape
        scale = 0.2 * math.sqrt(max(shape)) if adjusts == "match_rms_adamw" else math.sqrt(max(1.0, rows / columns))
        rate = float(group["lr"]) * scale / math.sqrt(max(shape))
        return rate, momentum, momentum, group.get("maximize", False), (momentum, 0.0, False)

    return response


_RULES: Dict[str, Callable[[Any], Union[None, Response, Callable[[Sequence[int]], Response]]]] = {
    "SGD": _sgd,
    "Adam": _adam,
    "AdamW": _adam,
    "NAdam": _adam,
    "Adamax": _adam,  # divides by a maximum, which is no less than the root of a mean
    "RMSprop": _rmsprop,
    "Adagrad": _adagrad,
    "Muon": _muon,  # since torch 2.9
}


def _rule_of(optimizer):
    torch = sys.modules.get("torch")
    for name, rule in _RULES.items() if torch is not None else ():
        if isinstance(optimizer, getattr(torch.optim, name, ())):
            return rule
    return None


def _is_known(optimizer):
    return all(_rule_of(part) is not None for part in parts_of(optimizer))


def reported_rate(optimizer: Any, learning_rate: Rate) -> Optional[float]:
    """The learning rate for the run folder, where there is one number."""
    if learning_rate is not None:
        return None if hasattr(learning_rate, "keys") else float(learning_rate)
    groups = getattr(optimizer, "param_groups", None)
    return float(groups[0]["lr"]) if groups and "lr" in groups[0] else None


class Steps:
    """What the core is told of the steps that follow."""

    def __init__(self, plan, block, optimizer: Any, learning_rate: Rate, of_use: bool):
        """`optimizer` and `learning_rate`: what `hearsay.join` was given. `of_use`: somebody may look at the rate who
        does not need it: a trigger of the loop's own, or a server. Raises ConfigError if an optimizer was given, and
        the configuration needs to know its steps, and they are not known."""
        self._needed, self._exchange = plan.measures_steps, plan.exchange
        self._asked = self._needed or of_use
        self._names = block.names
        self._tensors = list(block.parameters.values())
        self._optimizer, self._learning_rate = optimizer, learning_rate
        self._groups: Dict[int, Tuple[List[int], List[List[str]]]] = {}
        self._told: Any = None
        if optimizer is not None and self._needed:
            self._responses(optimizer, None)

    def tell(self, core, optimizer: Any, learning_rate: Rate, required: bool = True) -> None:
        """Tells `core` how far the next step moves each parameter, by what `member.step` is given, else by what was
        given last, to it or to `hearsay.join`. Raises ConfigError if that is not known, and `required` and the
        configuration needs it."""
        if not self._asked:
            return
        try:
            responses = self._responses(optimizer, learning_rate)
        except ConfigError:
            if self._needed and required:
                raise
            return
        if _is_known(optimizer):
            self._optimizer = optimizer
        if learning_rate is not None:
            self._learning_rate = learning_rate
        if responses != self._told:
            core.tell_steps(responses)
            self._told = responses

    def _responses(self, optimizer: Any, learning_rate: Rate) -> List[Response]:
        """The response of every parameter."""
        if not _is_known(optimizer) and _is_known(self._optimizer):
            optimizer = self._optimizer  # a function applies the update, or something that wraps the optimizer
        is_known = _is_known(optimizer)
        said = learning_rate if learning_rate is not None or is_known else self._learning_rate
        known: Dict[str, Response] = {}
        for part in parts_of(optimizer) if is_known else ():
            for group, tensors in zip(part.param_groups, self._tensors_of(part)):
                response = _rule_of(part)(group)
                if callable(response):
                    known.update((name, response(shape)) for name, shape in tensors.items())
                elif response is not None:
                    known.update(dict.fromkeys(tensors, response))
        if said is not None:
            self._take(said, known)
        missing = [name for name in self._names if name not in known]
        if missing:
            raise ConfigError(self._not_known(optimizer, said, missing))
        return [known[name] for name in self._names]

    def _take(self, said, known):
        """A rate that was said takes the place of the optimizer's, or is that of plain SGD."""
        rates = said if hasattr(said, "keys") else dict.fromkeys(self._names, said)
        unknown = set(rates) - set(self._names)
        if unknown:
            raise ConfigError(f"learning_rate has a rate for {_listed(sorted(unknown))}; there is no such parameter")
        for name, rate in rates.items():
            known[name] = (float(rate), *known.get(name, _PLAIN)[1:])

    def _tensors_of(self, optimizer) -> List[Dict[str, Sequence[int]]]:
        """The names of each group's parameters, with their shapes."""
        groups = optimizer.param_groups
        counts = [len(group["params"]) for group in groups]
        before = self._groups.get(id(optimizer))
        if before is None or before[0] != counts:
            name = {id(tensor): name for name, tensor in zip(self._names, self._tensors)}
            tensors = [{name[id(p)]: p.shape for p in group["params"] if id(p) in name} for group in groups]
            before = self._groups[id(optimizer)] = counts, tensors
        return before[1]

    def _not_known(self, optimizer, said, missing) -> str:
        unknown = [part for part in parts_of(optimizer) if _rule_of(part) is None]
        name = " and ".join(type(part).__name__ for part in unknown or parts_of(optimizer))
        if hasattr(said, "keys"):
            why = f"learning_rate says no rate of {_listed(missing)}"
        elif not unknown and any(group.get("centered") for group in optimizer.param_groups):
            why = f"it does not know that of the optimizer {name} with centered=True"
        elif not unknown:
            why = f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} in no group of the optimizer {name}"
        elif hasattr(unknown[0], "step"):
            why = f"it does not know that of the optimizer {name}"
        elif self._optimizer is not None:
            before = next(part for part in parts_of(self._optimizer) if _rule_of(part) is None)
            why = f"it does not know that of the optimizer {type(before).__name__}"
        else:
            why = "nobody has told it: give the optimizer to hearsay.join(…, optimizer=…) or to member.step"
        return (
            f"exchange '{self._exchange}', as it is configured, measures by how far a step moves each parameter, and "
            f"{why}. Where steps are those of plain SGD say the rate, a number or a mapping of names to numbers: "
            f"hearsay.join(…, learning_rate=0.1), or member.step(…, learning_rate=0.1) in every step"
        )


def _listed(names):
    return ", ".join(f"'{name}'" for name in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
