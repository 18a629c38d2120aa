"""Whether parameters describe physical bodies, for each state of a batch.

A rigid body is a nonnegative mass density. Ten parameters belong to one exactly if the pseudo-inertia

    [Σ  h]
    [hᵀ m],   Σ = ½ tr(I) 1 - I,   I about the origin, h = m c,

is positive semidefinite. Reference: P. Wensing, S. Kim, J.-J. Slotine, Linear matrix inequalities for physically
consistent inertial parameter identification (2018). Limiting cases (points, rods, plates) count as physical.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.errors import BadArgument, Sentences, expect
from delassus.model.model import ParametricModel

_ROUNDING = 1e-12  # tolerance relative to the trace, for limiting cases


class ParameterStatus(Sentences):
    """Problems of a set of parameters; `sentence` describes them.

    >>> all(status.sentence for status in dl.model.ParameterStatus)
    True
    """

    PHYSICAL = 0, "The parameters are physical."
    PSEUDO_INERTIA = 1, "The moments of inertia are those of no body of this mass: the pseudo-inertia is not positive."
    NEGATIVE_ARMATURE = 2, "A rotor inertia is negative."
    NEGATIVE_MASS = 3, "The mass is negative."
    NO_ROTATION = 4, "The quaternion does not have length 1."
    NOT_FINITE = 5, "A parameter is not a finite number."


@dataclass(frozen=True, eq=False)
class ParameterCheck:
    """Result of `check_parameters`.

    Attributes:
        names: Names of the parts, such as "inertia:knee".
        by_part: (…, parts) values of `ParameterStatus`.

    >>> robot = dl.load("pendulum").parametric("inertia")
    >>> check = dl.model.check_parameters(robot, robot.pack({}))
    >>> isinstance(check, dl.model.ParameterCheck)
    True
    """

    names: tuple[str, ...]
    by_part: NDArray[np.int64]

    @property
    def status(self) -> NDArray[np.int64]:
        """(…) the worst `ParameterStatus` of each state: 0 if it is physical."""
        worst: NDArray[np.int64] = self.by_part.max(axis=-1)
        return worst

    @property
    def physical(self) -> NDArray[np.bool_]:
        """(…) whether the state is physical."""
        good: NDArray[np.bool_] = self.status == ParameterStatus.PHYSICAL
        return good

    def reasons(self, *item: int) -> list[str]:
        """Problems of one state of the batch: a sentence for every part that is not physical."""
        status_by_part = zip(self.names, self.by_part[item].tolist(), strict=True)
        return [f"{name}: {list(ParameterStatus)[status]}" for name, status in status_by_part if status]


def check_parameters(model: ParametricModel, parameters: ArrayLike) -> ParameterCheck:
    """Check whether parameters (…, nparameters) are physical; kernels accept any.

    Args:
        model: The model that has the parameters.
        parameters: One set, or a batch.

    >>> robot = dl.load("pendulum").parametric("inertia")
    >>> check = dl.model.check_parameters(robot, robot.pack({}))
    """
    expect("the model", model, ParametricModel, 'model.parametric("inertia")')
    p = np.asarray(parameters, float)
    if p.shape[-1:] != (model.nparameters,):
        raise BadArgument(
            f"the parameters have shape {p.shape}; this model needs (…, {model.nparameters}).", code="wrong-shape"
        )
    by_part = np.zeros((*p.shape[:-1], len(model.parts)), np.int64)
    for k, part in enumerate(model.parts):
        part_values = p[..., part.at]
        finite = np.isfinite(part_values).all(-1)
        status = _status(part.kind, np.where(finite[..., None], part_values, 0.0))
        by_part[..., k] = np.where(finite, status, ParameterStatus.NOT_FINITE)
    return ParameterCheck(tuple(part.name for part in model.parts), by_part)


def _status(kind: str, x: NDArray[np.float64]) -> Any:
    """The status (…) of finite parameters (…, n) of one part."""
    if kind in ("placement", "frame"):
        is_unit = np.abs(np.linalg.norm(x[..., 3:], axis=-1) - 1.0) < 1e-6
        return np.where(is_unit, ParameterStatus.PHYSICAL, ParameterStatus.NO_ROTATION)
    if kind == "mass":
        return np.where(x[..., 0] >= 0.0, ParameterStatus.PHYSICAL, ParameterStatus.NEGATIVE_MASS)
    if kind == "armature":
        return np.where((x >= 0.0).all(-1), ParameterStatus.PHYSICAL, ParameterStatus.NEGATIVE_ARMATURE)
    if kind == "inertia":
        shape = np.where(_is_density(x), ParameterStatus.PHYSICAL, ParameterStatus.PSEUDO_INERTIA)
        return np.where(x[..., 0] < 0.0, ParameterStatus.NEGATIVE_MASS, shape)
    return np.zeros(x.shape[:-1], np.int64)


def _is_density(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the pseudo-inertia is positive semidefinite, for nonnegative masses.

    The test uses second moments about the center, Σ - h hᵀ/m, which have a single unit, so that rounding can be
    bounded. A body without mass has no first moment.
    """
    mass, h = x[..., 0], x[..., 1:4]
    I = x[..., [[4, 5, 7], [5, 6, 8], [7, 8, 9]]]
    sigma = 0.5 * np.trace(I, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - I
    massless = mass == 0.0
    shift = h[..., :, None] * h[..., None, :] / np.where(massless, 1.0, mass)[..., None, None]
    scale = np.abs(np.trace(sigma, axis1=-2, axis2=-1)) + np.abs(np.trace(shift, axis1=-2, axis2=-1))
    least = np.linalg.eigvalsh(sigma - shift)[..., 0]
    physical: NDArray[np.bool_] = (least >= -_ROUNDING * scale) & ((h == 0.0).all(-1) | ~massless)
    return physical
