"""Files of trajectories: NumPy's archives, with all arrays by name and nothing that has to be unpickled."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from delassus.compiler.graph.parameters import PARAMETERS
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.model.model import Model
from delassus.model.parametric import ParametricModel
from delassus.stepping.trajectories.archives import read_arrays, write_arrays
from delassus.stepping.trajectories.contacts import ContactRecord
from delassus.stepping.trajectories.errors import TrajectoryError, TrajectoryFileError
from delassus.stepping.trajectories.trajectory import ARRAYS, MEASURES, Trajectory

_EVENT: Final = "event "
_CONTACTS: Final = "contacts "


def save(log: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write it; a file that was there is replaced when all is written."""
    arrays = {name: np.asarray(getattr(log, name)) for name in ARRAYS}
    arrays |= {_EVENT + name: x for name, x in log.events.items()}
    arrays |= {name: getattr(log, name) for name in MEASURES if log.mechanism is not None or name in log.measures}
    if log.parameters is not None:
        arrays[PARAMETERS] = np.asarray(log.parameters)
    if log.contacts is not None:
        arrays |= {_CONTACTS + name: x for name, x in log.contacts.arrays.items()}
    write_arrays("the trajectory", path, arrays)


def load(path: str | os.PathLike[str], of: Any = None) -> Trajectory:
    """Read what `save` wrote, of a mechanism, model or simulation."""
    arrays = read_arrays(path)
    missing = [name for name in ARRAYS if name not in arrays]
    if missing:
        raise TrajectoryFileError(f"{path} is not a trajectory: it has no {', '.join(missing)}.")
    contacts = _named(_CONTACTS, arrays)
    simulation = of if hasattr(of, "mechanism") else None
    return Trajectory(
        **{name: arrays[name] for name in ARRAYS},
        events=_named(_EVENT, arrays),
        mechanism=_mechanism(path, arrays, of if simulation is None else of.mechanism),
        contacts=ContactRecord.of_arrays(contacts) if contacts else None,
        simulation=simulation,
        measures={name: arrays[name] for name in MEASURES if name in arrays},
        parameters=arrays.get(PARAMETERS),
    )


def _named(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}


def _mechanism(path: Any, arrays: dict[str, Any], given: Any) -> Mechanism | None:
    found = Mechanism(given) if isinstance(given, (Model, ParametricModel)) else given
    if found is None:
        return None
    if not isinstance(found, Mechanism):
        raise TrajectoryError(
            f"a trajectory is one of a Mechanism, a Model or a Simulation, not of {type(given).__name__}."
        )
    nq, nv = arrays["q"].shape[-1], arrays["v"].shape[-1]
    if (nq, nv) != (found.nq, found.nv):
        raise TrajectoryError(
            f"{path} is a trajectory with nq {nq} and nv {nv}; the mechanism has {found.nq} and {found.nv}."
        )
    return found
