"""Files of trajectories: NumPy archives of named arrays, without pickled objects."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Final

import numpy as np

from delassus.common.archives import read_arrays, write_arrays
from delassus.compiler.graph.parameters import PARAMETERS
from delassus.errors import BadArgument
from delassus.output.checks import ARRAYS, MEASURES
from delassus.output.contacts import ContactRecord
from delassus.output.errors import TrajectoryError, TrajectoryFileError
from delassus.output.replay_record import ReplayRecord
from delassus.output.run_record import RunRecord
from delassus.output.status import MotionStatus
from delassus.output.trajectory import Trajectory
from delassus.step.flags import Mark

_EVENT: Final = "event "
_CONTACTS: Final = "contacts "
_RUN: Final = "run "
_REPLAY: Final = "replay "
_ACTIVATION: Final = "activation"
_TALLY: Final = "tally"
_MEMORY: Final = "memory"
_TAU: Final = "tau"


def save(log: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write a trajectory; an existing file is replaced when writing has succeeded."""
    arrays = {name: np.asarray(getattr(log, name)) for name in ARRAYS}
    arrays |= {_EVENT + name: x for name, x in log.events.items()}
    arrays |= {name: getattr(log, name) for name in MEASURES if log.mechanism is not None or name in log.measures}
    if log.parameters is not None:
        arrays[PARAMETERS] = np.asarray(log.parameters)
    for name in (_ACTIVATION, _TALLY, _MEMORY):
        if getattr(log, name) is not None:
            arrays[name] = np.asarray(getattr(log, name))
    if log.contacts is not None:
        arrays |= {_CONTACTS + name: x for name, x in log.contacts.arrays.items()}
    if log.run is not None:
        arrays |= {_RUN + name: x for name, x in log.run.arrays.items()}
    if log.tau is not None:
        arrays[_TAU] = log.applied_force
    if log.replay is not None:
        arrays |= {_REPLAY + name: x for name, x in log.replay.arrays.items()}
    write_arrays("the trajectory", path, arrays, TrajectoryFileError)


def load(path: str | os.PathLike[str], of: Any = None) -> Trajectory:
    """Read a file written by `save`, for a mechanism, model or simulation."""
    arrays = read_arrays("the trajectory", path, TrajectoryFileError)
    missing = [name for name in ARRAYS if name not in arrays]
    if missing:
        raise TrajectoryFileError(f"{path} is not a trajectory: it has no {', '.join(missing)}.", code="other-file")
    contacts, run, inputs = (_prefix_names(prefix, arrays) for prefix in (_CONTACTS, _RUN, _REPLAY))
    try:
        fields: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
        log = Trajectory(
            **fields,
            events=_prefix_names(_EVENT, arrays),
            contacts=ContactRecord.of_arrays(contacts) if contacts else None,
            measures={name: arrays[name] for name in MEASURES if name in arrays},
            parameters=arrays.get(PARAMETERS),
            activation=arrays.get(_ACTIVATION),
            tally=arrays.get(_TALLY),
            memory=arrays.get(_MEMORY),
            tau=arrays.get(_TAU),
        )
        log = replace(
            log,
            run=RunRecord.of_arrays(run, log.q.shape[:-1], log.time) if run else None,
            replay=ReplayRecord.of_arrays(inputs, log.q.shape[1:-1], log.v.shape[-1]) if inputs else None,
        )
        _check_status(log)
        tau = arrays.get(_TAU)
        if tau is not None and (tau.shape != log.v.shape or tau.dtype.kind not in "biuf"):
            raise TrajectoryError(
                f"its forces have shape {tau.shape}; they must be numbers of shape {log.v.shape}.", code="other-file"
            )
    except BadArgument as error:
        raise TrajectoryFileError(f"{path} is not a trajectory: {error}", code="other-file") from error
    simulation = of if hasattr(of, "mechanism") and hasattr(of, "candidates") else None
    if simulation is not None and contacts and len(simulation.candidates) != len(contacts["shapes"]):
        raise TrajectoryError(
            f"{path} is a trajectory with {len(contacts['shapes'])} candidates for contacts; the simulation has "
            f"{len(simulation.candidates)}.",
            code="other-system",
        )
    return replace(log, mechanism=of if simulation is None else of.mechanism, simulation=simulation)


def _prefix_names(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}


def _check_status(log: Trajectory) -> None:
    """Raise an error unless the values of the status are valid."""
    most = max(MotionStatus) if log.contacts is None else sum(Mark)
    if np.any(log.status < 0) or np.any(log.status > most):
        raise TrajectoryError(
            f"its status is {log.status.min()} to {log.status.max()}; it must be from 0 to {int(most)}.",
            code="other-file",
        )
