"""`RunRecord`: the data from which a simulation can continue at any recorded time."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.output.errors import TrajectoryError

_WHOLE: Final = ("count", "seed", "stream")

_MOST_PERIODS: Final = 2.0**53
"""More control periods than a run can have."""


@dataclass(frozen=True, eq=False)
class RunRecord:
    """Initial data of a run besides its first state.

    Attributes:
        begin: The trajectory's time [s] at which the run started.
        period: Control period [s].
        count: (…) control periods of the environments before the run.
        seed: (…) seed of random numbers.
        stream: (…) stream of random numbers.
        time: (times, …) [s] of each environment since its own start; None if that is the trajectory's.
    """

    begin: float
    period: float
    count: Any
    seed: Any
    stream: Any
    time: NDArray[np.float64] | None = None

    def select(self, times: Any, items: tuple[Any, ...]) -> RunRecord:
        """Select times and environments."""
        chosen = {name: np.asarray(getattr(self, name))[items] for name in _WHOLE}
        return replace(self, **chosen, time=None if self.time is None else self.time[times][(slice(None), *items)])

    def periods(self, time: float) -> int:
        """Number of control periods until a time [s] of the trajectory."""
        return int(np.rint((time - self.begin) / self.period))

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All fields as arrays, for files."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: np.asarray(x) for name, x in values.items() if x is not None}

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]], axes: tuple[int, ...], time: NDArray[Any]) -> RunRecord:
        """Create from the result of `arrays`, for a trajectory (times, …) with these axes and times."""
        shapes = {"begin": (), "period": (), **dict.fromkeys(_WHOLE, axes[1:])}
        for name, shape in (shapes | ({"time": axes} if "time" in arrays else {})).items():
            kinds = "iu" if name in _WHOLE else "f"
            if name not in arrays or arrays[name].dtype.kind not in kinds or arrays[name].shape != shape:
                raise TrajectoryError(f"its run has no {name} as simulations record them.", code="other-file")
        begin, period = float(arrays["begin"]), float(arrays["period"])
        if not (np.isfinite(begin) and 0.0 < period < np.inf):
            raise TrajectoryError(
                f"its run has control periods of {period} s; they must be positive.", code="other-file"
            )
        if not np.abs(time - begin).max() < _MOST_PERIODS * period:
            raise TrajectoryError(
                f"its times from {time[0]:g} to {time[-1]:g} s do not fit periods of {period:g} s.", code="other-file"
            )
        return cls(begin, period, **{name: arrays[name] for name in _WHOLE}, time=arrays.get("time"))
