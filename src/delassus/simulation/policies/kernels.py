"""Builds the kernel of a control period that contains the functions of a `CompiledPolicy`."""

from __future__ import annotations

import traceback
from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MethodType
from typing import Any, Final, NamedTuple
from weakref import WeakMethod, finalize, ref

import numpy

import delassus
import delassus.numpy as np
from delassus.compiler.host.inputs import Group, Input
from delassus.compiler.host.kernel import Kernel
from delassus.errors import DelassusError, short
from delassus.simulation.policies.draws import Draws
from delassus.simulation.policies.errors import PolicyError
from delassus.simulation.policies.policy import COMMANDS, CompiledPolicy
from delassus.step.actuators.external import JointForces
from delassus.step.bodies.kernels import period_step
from delassus.step.period.hooks import COUNTERS, Command, HookInputs, StepHooks
from delassus.step.period.kernels import simulate_with_hooks
from delassus.step.scene import Scene

_PLACES_OF_A_STEP: Final = 1024.0
"""Counters for random numbers of a function in one time step."""

_PLACE_AFTER: Final = 2.0**19
"""First counter for random numbers of the function after a step."""

_PACKAGE: Final = str(Path(delassus.__file__).parent)

_kernels: dict[int, dict[Any, Kernel[..., Any]]] = {}
"""Kernels by the identity of a user's function, removed with it. They refer to it weakly."""


class _Layout(NamedTuple):
    """Properties that a policy is compiled for, besides its functions: names, shapes, and whether it runs each step."""

    memory: tuple[tuple[str, tuple[int, ...]], ...]
    shared: tuple[tuple[str, tuple[int, ...]], ...]
    parameters: tuple[tuple[str, ...], tuple[str, ...]]
    every_step: bool


def kernel_with(policy: CompiledPolicy, scene: Scene) -> Kernel[..., Any]:
    """The kernel of a period with a policy. Policies with the same functions and shapes share it."""
    before, after = policy.before, policy.after
    function = after if before is None else before
    owner = function.__self__ if isinstance(function, MethodType) else function
    if id(owner) not in _kernels:
        _kernels[id(owner)] = {}
        finalize(owner, _kernels.pop, id(owner), None)
    known = _kernels[id(owner)]
    layout, functions = _layout_of(policy), (_weak(before), _weak(after))
    step = period_step(scene)
    key = (layout, functions, step)
    if key not in known:
        for old in [k for k in known if any(f is not None and f() is None for f in k[1])]:
            del known[old]
        known[key] = simulate_with_hooks(partial(_step_hooks, layout, functions), _group(layout), step)
    return known[key]


def shared_values(policy: CompiledPolicy, dtype: Any) -> dict[str, Any]:
    """The shared arrays of a policy as inputs of the kernel."""
    if not policy.shared:
        return {}
    return {"shared": _structure(tuple(policy.shared))(*policy.shared_arrays(dtype))}


def _layout_of(policy: CompiledPolicy) -> _Layout:
    memory, shared = (tuple((name, x.shape) for name, x in one.items()) for one in (policy.memory, policy.shared))
    return _Layout(memory, shared, policy.parameters, policy.every == "step")


def _weak(function: Callable[..., Any] | None) -> Any:
    if function is None:
        return None
    return WeakMethod(function) if isinstance(function, MethodType) else ref(function)


_structures: dict[tuple[str, ...], Any] = {}


def _structure(names: tuple[str, ...]) -> Any:
    """A class of structures with these fields; the same one for the same names."""
    if names not in _structures:
        _structures[names] = namedtuple("Shared", names)
    return _structures[names]


def _group(layout: _Layout) -> Group | None:
    """The shared arrays as inputs of a kernel, which reads them in place."""
    if not layout.shared:
        return None
    fields = {name: Input(f"({','.join(map(str, shape))})", shared=True) for name, shape in layout.shared}
    return Group(_structure(tuple(fields)), **fields)


def evaluate_command(policy: CompiledPolicy, read: HookInputs) -> Command:
    """The commands of a policy in one state, by evaluation of its function on plain arrays; slow, for inspection."""
    layout = _layout_of(policy)
    shared = shared_values(policy, float).get("shared")
    before = _step_hooks(layout, (_weak(policy.before), None), shared).before
    if before is None:
        return Command(read.inputs.control, None, read.memory)
    with numpy.errstate(all="ignore"):
        return before(read)


# --- tracing ----------------------------------------------------------------------------------------------------------


def _step_hooks(layout: _Layout, functions: tuple[Any, Any], shared: Any) -> StepHooks:
    """The functions of a policy on the inputs of a step, with the shared arrays of a kernel."""
    arrays = {} if shared is None else shared._asdict()
    before, after = (
        None if f is None else partial(_call, name, f, {n: arrays[n] for n in taken})
        for name, f, taken in zip(("before", "after"), functions, layout.parameters, strict=True)
    )
    return StepHooks(
        None if before is None else partial(_command, layout, before),
        None if after is None else partial(_remember, layout, after),
        layout.every_step,
    )


def _command(layout: _Layout, call: Callable[[Any], Any], read: HookInputs) -> Command:
    """Check the result of `before` and convert it to commands."""
    scene, memory = read.scene, _unpack(layout, read.memory)
    result = call(_snapshot(read, memory, 0.0))
    changes = {} if result is None else dict(result) if isinstance(result, Mapping) else {"control": result}
    control = _checked("before", "control", changes.pop("control", read.inputs.control[: scene.nu]), (scene.nu,))
    forces = {
        name: _checked("before", name, changes.pop(name), (scene.nv,)) for name in COMMANDS[1:] if name in changes
    }
    if forces and scene.many_bodies is not None:
        raise PolicyError(
            "the policy returns forces on joints, which scenes of many free bodies do not support: pass a Push, or "
            'choose method="dual".',
            code="not-supported",
        )
    joint = JointForces(*(forces.get(name, np.zeros(scene.nv)) for name in COMMANDS[1:])) if forces else None
    return Command(control, joint, _pack("before", layout, memory, changes))


def _remember(layout: _Layout, call: Callable[[Any], Any], read: HookInputs) -> Any:
    """Check the result of `after` and convert it to memory (n,)."""
    memory = _unpack(layout, read.memory)
    result = call(_snapshot(read, memory, _PLACE_AFTER))
    if result is not None and not isinstance(result, Mapping):
        raise PolicyError(
            f"after returned {short(repr(result))}; it must return a dict of memory, or None.", code="wrong-type"
        )
    return _pack("after", layout, memory, result or {})


def _snapshot(read: HookInputs, memory: dict[str, Any], place: float) -> Any:
    """The inputs of a step as the argument `now` of a user's function."""
    from delassus.simulation.sensors.readout import Readout
    from delassus.simulation.sensors.snapshot import StepSnapshot

    scene, state, h = read.scene, read.state, read.inputs.time_step
    force, a = state.impulse / h, np.zeros(scene.nv)
    control, ground = read.inputs.control[: scene.nu], read.inputs.ground
    readout = Readout(scene, state.q, state.v, a, force, state.contact, control, ground, state.time, h, read.tally)
    seed, stream, period = (read.counters[k] for k in range(COUNTERS))
    draws = Draws(seed, stream, period, place + _PLACES_OF_A_STEP * read.number)
    return StepSnapshot(readout, memory, draws)


def _call(name: str, weakly: Any, arrays: dict[str, Any], now: Any) -> Any:
    """The result of a user's function; its errors name the line."""
    function = weakly()
    if function is None:
        raise PolicyError("the function of the policy has been deleted: keep the policy.", code="wrong-type")
    try:
        return function(now, **arrays)
    except Exception as error:
        if isinstance(error, PolicyError):
            raise
        code = error.code if isinstance(error, DelassusError) else "function-failed"
        what = f"{name} of the policy failed{_place_of(error)}: {type(error).__name__}, {error}"
        raise PolicyError(what, code=code) from error


def _place_of(error: Exception) -> str:
    """The last line outside this package that led to an error; nothing if the call itself failed."""
    outside = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_PACKAGE)]
    if not outside:
        return ""
    last = next((f for f in reversed(outside) if f.line), outside[-1])
    return f" in line {last.lineno} of {Path(last.filename).name} (`{short(last.line or '', 80)}`)"


def _unpack(layout: _Layout, memory: Any) -> dict[str, Any]:
    parts, end = {}, 0
    for name, shape in layout.memory:
        size = int(np.prod(shape))
        parts[name], end = memory[end : end + size].reshape(shape), end + size
    return parts


def _pack(function: str, layout: _Layout, memory: dict[str, Any], changes: Mapping[str, Any]) -> Any:
    """The memory (n,) with changes by name."""
    unknown = next((name for name in changes if name not in memory), None)
    if unknown is not None:
        commands = f"{', '.join(COMMANDS)} and " if function == "before" else ""
        raise PolicyError(
            f"{function} of the policy returned {unknown!r}; it may return {commands}the memory "
            f"{', '.join(memory) or '(none)'}.",
            code="unknown-name",
        )
    parts = [np.zeros(0)]
    for name, shape in layout.memory:
        x = _checked(function, name, changes.get(name, memory[name]), shape)
        parts.append(x.astype(float).reshape(-1))
    return np.concatenate(parts)


def _checked(function: str, name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """What a policy returned under a name: an array of real numbers of this shape."""
    try:
        x = np.array(value)
    except (TypeError, ValueError):  # complex numbers among traced ones, or rows of several lengths
        x = None
    if x is None or (isinstance(x, numpy.ndarray) and x.dtype.kind not in "biuf"):
        raise PolicyError(
            f"{name} that {function} of the policy returned is {short(repr(value))}; it must be real numbers of shape "
            f"{shape}.",
            code="wrong-type",
        )
    if np.shape(x) != shape:
        raise PolicyError(
            f"{name} that {function} of the policy returned has shape {np.shape(x)}; it must be {shape}.",
            code="wrong-shape",
        )
    return x
