"""`CompiledPolicy`: functions of a user that are compiled into the control period, with memory and shared arrays.

    def act(now, *, weights):
        u = np.tanh(weights @ now.q)
        return {"control": u, "last": u}

    def judge(now):
        return {"reward": now["reward"] + now.v[0]}

    policy = CompiledPolicy(act, after=judge, memory={"last": np.zeros(12), "reward": 0.0}, shared={"weights": W})
    log = sim.run(q0, control=policy, steps=500)
    policy.unpack(log.memory)["reward"]          # (501, …)

The functions are written in `delassus.numpy` for one environment and are traced once for a simulation. Weights are read
when the period runs: `policy.with_shared(weights=W2)` compiles nothing.
"""

from __future__ import annotations

import inspect
import keyword
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MethodType
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from delassus.common.checks import one_of, real_array
from delassus.errors import short
from delassus.simulation.policies.errors import PolicyError

Array = NDArray[np.float64]

COMMANDS: Final = ("control", "force", "stiffness", "damping")
"""The names that `before` may return in addition to memory."""

EVERY: Final = ("period", "step")


@dataclass(frozen=True, eq=False)
class CompiledPolicy:
    """Functions that are compiled into the control period, with memory that they keep from period to period.

    `before(now, **shared)` runs before the forces of a step. It returns the controls (nu,), or a dict with any of
    "control" (nu,), "force", "stiffness" and "damping" (nv,), and new values of memory. Forces act on joints, in
    addition to those of the model; stiffness -∂f/∂q and damping -∂f/∂v make them implicit, like springs of the model.
    `after(now, **shared)` reads the new state after the loops are closed. It returns a dict of memory, or None.

    `now` has q, v, time, control, memory by name and sensors, such as now["gyro:trunk"], and random numbers by
    `now.draws`. A function receives the shared arrays that its keyword-only parameters name. A control, force or memory
    that is NaN freezes its environment; the others continue.

    Attributes:
        before: The function before the forces; None for none.
        after: The function after the step; None for none.
        memory: Initial values by name: numbers or arrays, whose shapes are those of the memory.
        shared: Arrays by name that all environments share, such as weights; they are copied.
        every: "period" or "step": whether the functions run once in each control period, or in each time step.
        reference: Controls in a form that `run` accepts. They are `now.control`, and act if `before` returns none.

    >>> dl.simulation.CompiledPolicy(lambda now: -2.0 * now.v, memory={"clock": 0.0}).initial
    array([0.])
    """

    before: Callable[..., Any] | None = None
    after: Callable[..., Any] | None = None
    memory: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)
    every: str = "period"
    reference: Any = None

    def __post_init__(self) -> None:
        one_of("every", self.every, EVERY)
        if self.before is None and self.after is None:
            raise PolicyError("the policy has no function: pass before= or after=.", code="missing-argument")
        for name in ("before", "after"):
            function = getattr(self, name)
            if function is None:
                continue
            if not callable(function):
                raise PolicyError(
                    f"{name} is {short(repr(function))}; it must be a function of the environment, such as "
                    "lambda now: -now.v.",
                    code="wrong-type",
                )
            _check_reference(name, function)
        for name in ("memory", "shared"):
            object.__setattr__(self, name, _arrays(name, getattr(self, name)))
        used = {one for taken in self.parameters for one in taken}
        unused, missing = [n for n in self.shared if n not in used], [n for n in used if n not in self.shared]
        if missing:
            raise PolicyError(
                f"a function of the policy takes {missing[0]!r}, which shared= does not have; it has "
                f"{', '.join(self.shared) or 'nothing'}.",
                code="unknown-name",
            )
        if unused:
            raise PolicyError(
                f"no function of the policy takes the shared array {unused[0]!r}: write (now, *, {unused[0]}).",
                code="unknown-name",
            )

    # --- memory -------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of values in memory."""
        return sum(x.size for x in self.memory.values())

    @cached_property
    def initial(self) -> Array:
        """(size,) initial memory."""
        return np.concatenate([np.zeros(0), *(x.ravel() for x in self.memory.values())])

    def fill(self, memory: ArrayLike, batch: tuple[int, ...]) -> Array:
        """Memory (…, size) at the start of a period; initial values replace NaN, and memory that a state lacks."""
        values = np.asarray(memory, float)
        if not values.shape[-1]:
            return np.broadcast_to(self.initial, (*batch, self.size)).copy()
        if values.shape[-1] != self.size:
            raise PolicyError(
                f"the memory of the state has {values.shape[-1]} values, and that of the policy has {self.size}. Start "
                "with sim.start(q0), or with memory of this policy, sim.start(q0, memory=policy.pack()).",
                code="wrong-shape",
            )
        return np.where(np.isnan(values), self.initial, values)

    def pack(self, **values: ArrayLike) -> Array:
        """Memory (…, size) with these values by name and initial values elsewhere, for `sim.start(q0, memory=…)`."""
        parts = dict(self.memory)
        for name, value in values.items():
            if name not in parts:
                raise PolicyError(
                    f"the memory has no {name!r}; it has {', '.join(parts) or 'nothing'}.", code="unknown-name"
                )
            parts[name] = self._checked(name, real_array(f"{name} of the memory", value))
        leads = [x.shape[: x.ndim - self.memory[name].ndim] for name, x in parts.items()]
        try:
            batch = np.broadcast_shapes(*leads)
        except ValueError:
            raise PolicyError(
                f"the values have the batch axes {leads}, which do not broadcast.", code="batch-mismatch"
            ) from None
        flat = [np.broadcast_to(x, (*batch, *self.memory[name].shape)).reshape(*batch, -1) for name, x in parts.items()]
        return np.concatenate([np.zeros((*batch, 0)), *flat], axis=-1)

    def _checked(self, name: str, x: Array) -> Array:
        core = self.memory[name].shape
        if x.shape[x.ndim - len(core) :] != core:
            axes = ", ".join(["…", *map(str, core)])
            raise PolicyError(f"{name} of the memory has shape {x.shape}; it must be ({axes}).", code="wrong-shape")
        return x

    def unpack(self, memory: ArrayLike) -> dict[str, Array]:
        """The parts of memory (…, size) by name, such as those of `log.memory` and `state.memory`."""
        values = real_array("the memory", memory)
        if values.shape[-1:] != (self.size,):
            raise PolicyError(
                f"the memory has shape {values.shape}; for this policy it must be (…, {self.size}).",
                code="wrong-shape",
            )
        parts, end = {}, 0
        for name, x in self.memory.items():
            part = values[..., end : end + x.size]
            parts[name], end = part.reshape((*part.shape[:-1], *x.shape)), end + x.size
        return parts

    # --- shared arrays ------------------------------------------------------------------------------------------------

    @cached_property
    def parameters(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the shared arrays that `before` and `after` take."""
        return _keywords(self.before), _keywords(self.after)

    def with_shared(self, **arrays: ArrayLike) -> CompiledPolicy:
        """A copy of this policy with other values of shared arrays; it is not compiled again."""
        changed = replace(self, shared={**self.shared, **arrays})
        for name, x in self.shared.items():
            if changed.shared[name].shape != x.shape:
                raise PolicyError(
                    f"{name} has shape {changed.shared[name].shape}; for this policy it must be {x.shape}. Create "
                    "another policy for the new shape.",
                    code="wrong-shape",
                )
        return changed

    def shared_arrays(self, dtype: DTypeLike) -> tuple[Any, ...]:
        """The shared arrays in the dtype of the step, in order."""
        kind = np.dtype(dtype)
        if kind not in self._converted:
            self._converted[kind] = tuple(np.asarray(x, kind) for x in self.shared.values())
        return self._converted[kind]

    @cached_property
    def _converted(self) -> dict[Any, tuple[Any, ...]]:
        return {}


def _check_reference(name: str, function: Any) -> None:
    """Compiled code is kept as long as its function, and found by it."""
    try:
        hash(function)
        weakref.ref(function.__self__ if isinstance(function, MethodType) else function)
    except TypeError:
        raise PolicyError(
            f"{name} is {short(repr(function))}, which has no hash or no weak references: wrap it in a function, such "
            "as lambda now: f(now).",
            code="wrong-type",
        ) from None


def _keywords(function: Callable[..., Any] | None) -> tuple[str, ...]:
    """The names of a function's keyword-only parameters without defaults."""
    try:
        parameters = () if function is None else inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # functions of C
        return ()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty)


def _arrays(what: str, values: Any) -> dict[str, Array]:
    """Named arrays, copied and read-only."""
    if not isinstance(values, Mapping):
        raise PolicyError(
            f"{what} is {short(repr(values))}; it must be a dict of names and values, such as {{'weights': W}}.",
            code="wrong-type",
        )
    arrays = {}
    for name, value in values.items():
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise PolicyError(
                f"{what} has the name {name!r}; names must be identifiers of Python.", code="unknown-name"
            )
        if what == "memory" and name in COMMANDS:
            raise PolicyError(
                f"memory has the name {name!r}, which is that of a command: choose another name.", code="unknown-name"
            )
        array = np.array(real_array(f"{name} of {what}", value))
        if not array.size:
            raise PolicyError(f"{name} of {what} has shape {array.shape}; it must not be empty.", code="wrong-shape")
        array.flags.writeable = False
        arrays[name] = array
    return arrays
