"""Files of trajectories: NumPy's archives, with all arrays by name and nothing that has to be unpickled."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from delassus.compiler.graph.parameters import PARAMETERS
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.model.model import Model
from delassus.model.parametric import ParametricModel
from delassus.stepping.trajectories.contacts import ContactRecord
from delassus.stepping.trajectories.errors import TrajectoryError, TrajectoryFileError
from delassus.stepping.trajectories.trajectory import ARRAYS, MEASURES, Trajectory

_EVENT: Final = "event "
_CONTACTS: Final = "contacts "


def save(log: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write it; a file that was there is replaced when all is written."""
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    arrays = {name: np.asarray(getattr(log, name)) for name in ARRAYS}
    arrays |= {_EVENT + name: x for name, x in log.events.items()}
    arrays |= {name: getattr(log, name) for name in MEASURES if log.mechanism is not None or name in log.measures}
    if log.parameters is not None:
        arrays[PARAMETERS] = np.asarray(log.parameters)
    if log.contacts is not None:
        arrays |= {_CONTACTS + name: x for name, x in log.contacts.arrays.items()}
    try:
        with partial.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        reason = error.strerror or error
        raise TrajectoryFileError(
            f"the trajectory could not be written to {path}: {reason}. It is still in memory: save it elsewhere."
        ) from error


def load(path: str | os.PathLike[str], of: Any = None) -> Trajectory:
    """Read what `save` wrote, of a mechanism, model or simulation."""
    arrays = _arrays(path)
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


def _arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            return {name: file[name] for name in file} if isinstance(file, np.lib.npyio.NpzFile) else {}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or "it is not a file that Trajectory.save wrote"
        raise TrajectoryFileError(f"no trajectory could be read from {path}: {reason}.") from error


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
