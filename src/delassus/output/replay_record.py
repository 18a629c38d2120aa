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
    def of_arrays(cls, arrays: dict[str, NDArray[Any]], batch: tuple[int, ...]) -> ReplayRecord:
        """Create from the result of `arrays`, for a run with this batch."""
        failures = arrays.get("failures", np.zeros(0))
        if failures.shape != (len(FAILURES), *batch) or failures.dtype.kind not in "iu":
            raise TrajectoryError(
                "its replay has no periods of failures as simulations record them.", code="other-file"
            )
        pushes, resets = dict[int, dict[str, Any]](), dict[int, dict[str, Any]]()
        for name, x in arrays.items():
            kind, _, rest = name.partition(" ")
            number, _, part = rest.partition(" ")
            if kind in ("push", "reset") and number.isdecimal():
                (pushes if kind == "push" else resets).setdefault(int(number), {})[part] = x
        return cls(
            arrays.get("control"),
            failures,
            {
                k: RecordedPush(tuple(map(str, x.get("frames", ()))), x.get("wrench"), x.get("kick"))
                for k, x in pushes.items()
            },
            {k: RecordedReset(x.pop("items"), x) for k, x in resets.items() if "items" in x},
        )
