"""`ReplayRecord`: the external inputs of a simulated run in each period, from which it can be repeated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.output.errors import TrajectoryError
from delassus.step.flags import Mark

FAILURES: Final = (Mark.FROZEN, Mark.UNSOLVED, Mark.TOO_LONG, Mark.MANY_CONTACTS, Mark.ENERGY_LIMITED)
"""Marks that say that something went wrong with an item, the worst first."""

NEVER: Final = -1
"""The period of what did not happen."""


class RecordedPush(NamedTuple):
    """A push of one period: names of frames, wrenches (…, frames, 6) or None, a kick (…, nv) or None."""

    frames: tuple[str, ...]
    wrench: Any
    kick: Any


class RecordedReset(NamedTuple):
    """Items that started again before a period: their numbers (n,), and their states by the names of `State`."""

    items: NDArray[np.int64]
    parts: dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class ReplayRecord:
    """Inputs of all control periods of a run, and when items were flagged first.

    Attributes:
        control: (periods, …, nu) as given, for all items or each; None if the controls are compiled into the step.
        failures: (marks, …) periods in which items were first flagged, in the order of `FAILURES`, or `NEVER`.
        pushes: Those of periods that have one, by their numbers.
        resets: Those before periods that have one, by their numbers.
        policy: The kernel or `CompiledPolicy` that is compiled into the step; None if there is none. Files keep neither
            it nor the controls, which such a policy reads.
    """

    control: Any
    failures: NDArray[np.int64]
    pushes: dict[int, RecordedPush] = field(default_factory=dict)
    resets: dict[int, RecordedReset] = field(default_factory=dict)
    policy: Any = None

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it but the policy, as a file keeps it."""
        arrays = {"failures": self.failures}
        if self.control is not None and self.policy is None:
            arrays["control"] = self.control
        for k, push in self.pushes.items():
            arrays[f"push {k} frames"] = np.array(push.frames, str)
            arrays |= {
                f"push {k} {name}": x for name, x in push._asdict().items() if name != "frames" and x is not None
            }
        for k, reset in self.resets.items():
            arrays[f"reset {k} items"] = reset.items
            arrays |= {f"reset {k} {name}": x for name, x in reset.parts.items()}
        return arrays

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]], batch: tuple[int, ...]) -> ReplayRecord:
        """What `arrays` gave, of a run of these items."""
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
