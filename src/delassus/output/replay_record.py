"""`ReplayRecord`: the external inputs of a simulated run in each period, from which it can be repeated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.output.errors import TrajectoryError
from delassus.step.flags import Mark

FAILURES: Final = (Mark.FROZEN, Mark.UNSOLVED, Mark.TOO_LONG, Mark.MANY_CONTACTS, Mark.ENERGY_LIMITED)
"""Flags of failures, the worst first."""

NEVER: Final = -1
"""The period of a failure that did not happen."""

_VECTORS: Final = ("q", "v", "impulse", "contact", "activation", "parameters", "tally", "memory")
_NUMBERS: Final = ("residual", "time", "status", "count", "seed", "stream")
"""Parts of the states of recorded resets: vectors and numbers of each environment."""


class RecordedPush(NamedTuple):
    """A push in one period: names of frames, wrenches (…, frames, 6) or None, a velocity change (…, nv) or None."""

    frames: tuple[str, ...]
    wrench: Any
    kick: Any


class RecordedReset(NamedTuple):
    """Environments that were reset before a period: their indices (n,), and their states by the names of `State`."""

    items: NDArray[np.int64]
    parts: dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class ReplayRecord:
    """Inputs of all control periods of a run, and the first flags of environments.

    Attributes:
        control: (periods, …, nu) controls, for all environments or each; None in files of runs with a policy.
        failures: (marks, …) periods in which environments were first flagged, in the order of `FAILURES`, or `NEVER`.
        pushes: Pushes by period.
        resets: Resets by the period that follows.
        policy: The `CompiledPolicy` in the step; None without one. Files contain neither it nor the controls, which it
            reads.
    """

    control: Any
    failures: NDArray[np.int64]
    pushes: dict[int, RecordedPush] = field(default_factory=dict)
    resets: dict[int, RecordedReset] = field(default_factory=dict)
    policy: Any = None

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All fields except the policy as arrays, for files."""
        arrays = {"failures": self.failures}
        if self.control is not None and self.policy is None:
            arrays["control"] = self.control
        for k, recorded_push in self.pushes.items():
            arrays[f"push {k} frames"] = np.array(recorded_push.frames, str)
            arrays |= {
                f"push {k} {name}": x
                for name, x in recorded_push._asdict().items()
                if name != "frames" and x is not None
            }
        for k, reset in self.resets.items():
            arrays[f"reset {k} items"] = reset.items
            arrays |= {f"reset {k} {name}": x for name, x in reset.parts.items()}
        return arrays

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]], batch: tuple[int, ...], nv: int) -> ReplayRecord:
        """Create from the result of `arrays`, for a run with this batch and so many velocities."""
        failures, control = arrays.get("failures", np.zeros(0)), arrays.get("control")
        _expect(failures.shape == (len(FAILURES), *batch) and failures.dtype.kind in "iu", "periods of failures")
        _expect(control is None or (control.ndim > 1 and _fits_batch(control[:1], 1, batch)), "controls")
        periods = np.inf if control is None else len(control)
        _expect(bool(np.all((failures >= NEVER) & (failures < periods))), "periods of failures")
        pushes, resets = dict[int, dict[str, Any]](), dict[int, dict[str, Any]]()
        for name, x in arrays.items():
            kind, _, rest = name.partition(" ")
            number, _, part = rest.partition(" ")
            if kind in ("push", "reset") and number.isdecimal():
                (pushes if kind == "push" else resets).setdefault(int(number), {})[part] = x
        return cls(
            control,
            failures,
            {k: _read_push(x, batch, nv) for k, x in pushes.items()},
            {k: _read_reset(x, batch) for k, x in resets.items()},
        )


def _expect(is_valid: bool, what: str) -> None:
    """Raise an error unless a part of a file is as simulations record it."""
    if not is_valid:
        raise TrajectoryError(f"its replay has no {what} as simulations record them.", code="other-file")


def _fits_batch(x: NDArray[Any], core: int, batch: tuple[int, ...]) -> bool:
    """Whether numbers (1, …, core axes) or (…, core axes) broadcast to a batch."""
    axes = x.shape[: x.ndim - core]
    try:
        return x.dtype.kind in "iuf" and x.ndim >= core and np.broadcast_shapes(axes, (1, *batch)) == (1, *batch)
    except ValueError:
        return False


def _read_push(parts: dict[str, NDArray[Any]], batch: tuple[int, ...], nv: int) -> RecordedPush:
    frames, wrench, kick = parts.get("frames", np.zeros(0)), parts.get("wrench"), parts.get("kick")
    _expect(frames.ndim == 1 and (frames.dtype.kind == "U" or not frames.size), "frames of pushes")
    is_wrench = wrench is None or (wrench.shape[-2:] == (len(frames), 6) and _fits_batch(wrench, 2, batch))
    _expect(is_wrench and (wrench is not None or not frames.size), "wrenches")
    _expect(kick is None or (kick.shape[-1:] == (nv,) and _fits_batch(kick, 1, batch)), "kicks")
    return RecordedPush(tuple(map(str, frames)), wrench, kick)


def _read_reset(parts: dict[str, NDArray[Any]], batch: tuple[int, ...]) -> RecordedReset:
    items, parts = parts.get("items", np.zeros(0)), {name: x for name, x in parts.items() if name != "items"}
    count = int(np.prod(batch, dtype=int))
    is_index = items.ndim == 1 and items.dtype.kind in "iu" and bool(np.all((items >= 0) & (items < count)))
    _expect(is_index, "items of resets")
    _expect(parts.keys() == {*_VECTORS, *_NUMBERS}, "states of resets")
    for name, x in parts.items():
        fits = x.ndim == (2 if name in _VECTORS else 1) and len(x) == len(items) and x.dtype.kind in "biuf"
        _expect(fits, f"{name} of resets")
    return RecordedReset(items.astype(np.int64), parts)
