"""Reference scales of a mechanism that make tolerances independent of units; computed once, before any state is known.

The linear rows of a constraint share a scale, and so do its angular rows. Therefore scales do not depend on the axes of
a constraint's frame. All values are maxima over the neutral configuration and a few others with rotated joints, since
rows may be unable to move in one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy
from numpy.typing import NDArray

from delassus.compiler.host.definition import plainly
from delassus.constrained.delassus.delassus_methods import lower_delassus
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import rows_in
from delassus.dynamics.kinematics.manifold import integrate
from delassus.dynamics.mass.crba import mass_matrix
from delassus.model.model import Model

Floats: TypeAlias = NDArray[numpy.float64]

_ROUNDING: Final = 1e-20
"""Mobility below which a row counts as immobile, relative to the whole robot: a squared rounding error with a
margin.
"""

_SAMPLES: Final = 3
"""Number of configurations besides the neutral one."""


def row_mobilities(mechanism: Mechanism) -> tuple[float, ...]:
    """Mobility (m,) [1/kg, 1/(kg·m²)]: acceleration of each row per unit of its force, to the nearest power of two.

    It is one value for all linear rows of a constraint, and one for its angular rows, independent of the axes of its
    frame: the maximum over them, in the neutral configuration and a few others. Joints that share a constraint in
    `JointLock` or an `Implicit` have separate values.
    """
    with plainly():
        return _mobilities(mechanism.plain)


def row_groups(mechanism: Mechanism) -> tuple[tuple[int, str], ...]:
    """The group of each row: rows of one constraint with the same unit form a group."""
    with plainly():
        return _groups(mechanism.plain)


def joint_mobilities(mechanism: Mechanism) -> tuple[float, ...]:
    """The acceleration of each joint per unit of its generalized force (nv,) [1/kg, 1/(kg·m²)]: the diagonal of M⁻¹.

    The maximum over the same configurations. It makes values of different joints comparable.
    """
    with plainly():
        return _joint_mobilities(mechanism.plain)


def joint_inertias(mechanism: Mechanism) -> tuple[float, ...]:
    """The generalized force of each joint per unit of its acceleration (nv,) [kg, kg·m²]: the diagonal of M.

    The maximum over the same configurations.
    """
    with plainly():
        return _joint_inertias(mechanism.plain)


def row_sizes(mechanism: Mechanism) -> tuple[float, ...]:
    """Reference sizes of the position errors of rows (m,): the length of the robot [m], or a radian.

    For rows on joints, their change if every joint rotates by one radian or translates by the robot's length.
    """
    with plainly():
        return _sizes(mechanism.plain)


@lru_cache(maxsize=256)
def _mobilities(mechanism: Mechanism) -> tuple[float, ...]:
    with numpy.errstate(all="ignore"):
        result = numpy.stack([_diagonal(mechanism, q) for q in _configurations(mechanism)])
    mobility = numpy.max(result, axis=0, where=numpy.isfinite(result), initial=0.0)
    groups = _groups(mechanism)
    largest: dict[tuple[int, str], float] = {}
    for group, value in zip(groups, mobility, strict=True):
        largest[group] = max(largest.get(group, 0.0), float(value))
    # Rows that cannot move, up to rounding, need only a value in their unit: that of the whole robot.
    mass = sum(joint.inertia.mass for joint in mechanism.model.joints) or 1.0
    total = {"linear": 1.0 / mass, "angular": 1.0 / (mass * length_of(mechanism.model) ** 2)}
    pairs = [(largest[group], total.get(group[1], 0.0)) for group in groups]
    return tuple(_power_of_two((value if value > _ROUNDING * other else other) or 1.0) for value, other in pairs)


@lru_cache(maxsize=256)
def _sizes(mechanism: Mechanism) -> tuple[float, ...]:
    length, turning = length_of(mechanism.model), _turning(mechanism)
    reach = numpy.where(turning > 0.0, 1.0, length)
    with numpy.errstate(all="ignore"):
        result = [numpy.abs(constraint_jacobian(mechanism, q, time=0.0)) @ reach for q in _configurations(mechanism)]
    most = numpy.max(result, axis=0, where=numpy.isfinite(result), initial=0.0)
    sizes = {"linear": length, "angular": 1.0}
    return tuple(sizes.get(kind) or float(most[r]) or 1.0 for r, (_, kind) in enumerate(_groups(mechanism)))


def length_of(model: Model) -> float:
    """The length of a robot [m]: the largest distance from a joint to the next, to a frame or to a center of mass."""
    placements = [joint.placement for joint in model.joints] + [frame.placement for frame in model.frame_list]
    lengths = [math.hypot(*placement.translation) for placement in placements]
    for joint in model.joints:
        if joint.inertia.mass > 0.0:
            lengths += [
                math.hypot(*joint.inertia.com),
                math.sqrt(abs(numpy.trace(joint.inertia.rotational)) / joint.inertia.mass),
            ]
    return max(lengths, default=0.0) or 1.0


@lru_cache(maxsize=256)
def _joint_mobilities(mechanism: Mechanism) -> tuple[float, ...]:
    return _largest_diagonal(numpy.asarray(numpy.linalg.inv(_mass_matrices(mechanism)), numpy.float64))


@lru_cache(maxsize=256)
def _joint_inertias(mechanism: Mechanism) -> tuple[float, ...]:
    return _largest_diagonal(_mass_matrices(mechanism))


@lru_cache(maxsize=16)  # matrices of long chains are large
def _mass_matrices(mechanism: Mechanism) -> Floats:
    """M in every configuration (k, nv, nv)."""
    return numpy.stack([mass_matrix(mechanism.model, q) for q in _configurations(mechanism)])


def _largest_diagonal(matrices: NDArray[Any]) -> tuple[float, ...]:
    """The maximum of each diagonal element over matrices (k, n, n)."""
    return tuple(numpy.max(numpy.diagonal(matrices, axis1=1, axis2=2), axis=0).tolist())


def _diagonal(mechanism: Mechanism, q: Floats) -> Floats:
    """The diagonal of J M⁻¹ Jᵀ (m,)."""
    diagonal: Floats = numpy.diagonal(lower_delassus(mechanism, q, "auto", 0.0))
    return diagonal


def _configurations(mechanism: Mechanism) -> Iterator[Floats]:
    """The neutral configuration, and some with all rotational joints turned by up to a radian, without translations."""
    model = mechanism.model
    neutral = model.neutral()
    yield neutral
    turning = _turning(mechanism)
    rng = numpy.random.default_rng(0)
    for _ in range(_SAMPLES):
        yield integrate(model, neutral, turning * rng.uniform(-1.0, 1.0, model.nv))


def _turning(mechanism: Mechanism) -> Floats:
    """1 for velocities of rotation, 0 for those of translation (nv,)."""
    turning = numpy.zeros(mechanism.nv)
    for link in LinkMotions.of(mechanism.model, mechanism.neutral(), numpy.zeros(mechanism.nv)).tree.links:
        turning[list(link.dofs)] = [float(direction >= 3) for direction in link.motion.directions]
    return turning


@lru_cache(maxsize=256)
def _groups(mechanism: Mechanism) -> tuple[tuple[int, str], ...]:
    with numpy.errstate(all="ignore"):  # the neutral configuration may be singular, such as a rod without length
        rows = rows_in(mechanism, LinkMotions.of(mechanism.model, mechanism.neutral(), numpy.zeros(mechanism.nv), 0.0))
    linear: set[int] = set()
    angular: set[int] = set()
    for link_rows in rows.links.values():
        for row, K in zip(link_rows.rows, link_rows.K, strict=True):
            (linear if numpy.any(K[:3]) else angular).add(row)
    groups = []
    for constraint, at in enumerate(mechanism.row_ranges()):
        for row in range(at.start, at.stop):
            kind = "linear" if row in linear else "angular" if row in angular else f"row {row}"
            groups.append((constraint, kind))
    return tuple(groups)


def _power_of_two(x: float) -> float:
    """The power of two nearest to a positive value: equal parts of a robot get equal values, in any units."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(1.0, exponent if fraction >= math.sqrt(0.5) else exponent - 1)
