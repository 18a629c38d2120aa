"""Reference scales of a mechanism that make tolerances independent of units, computed before any state is known.

Rows of one constraint and one unit belong together: the linear ones, and the angular ones, each on its own. So nothing
depends on the axes of a constraint's frame either. All numbers are of the neutral configuration and some others, in
which joints are turned: rows may not be able to move in one of them.
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
"""The mobility that rounding gives to a row, as a share of the whole robot's, and a reserve: it is a square."""

_SAMPLES: Final = 3
"""Configurations besides the neutral one."""


def row_mobilities(mechanism: Mechanism) -> tuple[float, ...]:
    """The acceleration of each row per unit of its force (m,) [1/kg, 1/(kg·m²)], to the nearest power of two.

    It is one number for all linear rows of a constraint, and one for its angular ones, so that nothing depends on the
    axes of its frame: the largest of them, in the neutral configuration and some others. Joints that share a constraint
    in `JointLock` or an `Implicit` have their own.
    """
    with plainly():
        return _mobilities(mechanism.plain)


def row_groups(mechanism: Mechanism) -> tuple[tuple[int, str], ...]:
    """The group of each row: rows of one constraint with the same unit."""
    with plainly():
        return _groups(mechanism.plain)


def joint_mobilities(mechanism: Mechanism) -> tuple[float, ...]:
    """The acceleration of each joint per unit of its generalized force (nv,) [1/kg, 1/(kg·m²)]: the diagonal of M⁻¹.

    The largest in the same configurations. It makes numbers of different joints comparable.
    """
    with plainly():
        return _joint_mobilities(mechanism.plain)


def joint_inertias(mechanism: Mechanism) -> tuple[float, ...]:
    """The generalized force of each joint per unit of its acceleration (nv,) [kg, kg·m²]: the diagonal of M.

    The largest in the same configurations.
    """
    with plainly():
        return _joint_inertias(mechanism.plain)


def row_sizes(mechanism: Mechanism) -> tuple[float, ...]:
    """Reference sizes of the position errors of rows (m,): the length of the robot [m], or a radian.

    For rows on joints, what they change by when every joint turns by a radian, or moves by that length.
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
    for group, own in zip(groups, mobility, strict=True):
        largest[group] = max(largest.get(group, 0.0), float(own))
    # Rows that nothing moves, but for rounding, have no mobility, and no use for one but to have its unit: that of the
    # whole robot.
    mass = sum(joint.inertia.mass for joint in mechanism.model.joints) or 1.0
    whole = {"linear": 1.0 / mass, "angular": 1.0 / (mass * length_of(mechanism.model) ** 2)}
    pairs = [(largest[group], whole.get(group[1], 0.0)) for group in groups]
    return tuple(_power_of_two((own if own > _ROUNDING * other else other) or 1.0) for own, other in pairs)


@lru_cache(maxsize=256)
def _sizes(mechanism: Mechanism) -> tuple[float, ...]:
    length, turning = length_of(mechanism.model), _turning(mechanism)
    reach = numpy.where(turning > 0.0, 1.0, length)
    with numpy.errstate(all="ignore"):
        result = [numpy.abs(constraint_jacobian(mechanism, q, time=0.0)) @ reach for q in _configurations(mechanism)]
    most = numpy.max(result, axis=0, where=numpy.isfinite(result), initial=0.0)
    known = {"linear": length, "angular": 1.0}
    return tuple(known.get(kind) or float(most[r]) or 1.0 for r, (_, kind) in enumerate(_groups(mechanism)))


def length_of(model: Model) -> float:
    """The length of a robot [m]: the largest distance from a joint to the next, to a frame or to a center of mass."""
    places = [joint.placement for joint in model.joints] + [frame.placement for frame in model.frame_list]
    lengths = [math.hypot(*place.translation) for place in places]
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


@lru_cache(maxsize=16)  # those of long chains are large
def _mass_matrices(mechanism: Mechanism) -> Floats:
    """M in every configuration (k, nv, nv)."""
    return numpy.stack([mass_matrix(mechanism.model, q) for q in _configurations(mechanism)])


def _largest_diagonal(matrices: NDArray[Any]) -> tuple[float, ...]:
    """The largest of each diagonal element of some matrices (k, n, n)."""
    return tuple(numpy.max(numpy.diagonal(matrices, axis1=1, axis2=2), axis=0).tolist())


def _diagonal(mechanism: Mechanism, q: Floats) -> Floats:
    """The diagonal of J M⁻¹ Jᵀ (m,)."""
    diagonal: Floats = numpy.diagonal(lower_delassus(mechanism, q, "auto", 0.0))
    return diagonal


def _configurations(mechanism: Mechanism) -> Iterator[Floats]:
    """The neutral configuration, and some with all joints turned up to a radian; nothing is moved by any length."""
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
    with numpy.errstate(all="ignore"):  # the neutral configuration may be none, such as that of a rod without length
        rows = rows_in(mechanism, LinkMotions.of(mechanism.model, mechanism.neutral(), numpy.zeros(mechanism.nv), 0.0))
    linear: set[int] = set()
    angular: set[int] = set()
    for own in rows.links.values():
        for row, K in zip(own.rows, own.K, strict=True):
            (linear if numpy.any(K[:3]) else angular).add(row)
    groups = []
    for constraint, at in enumerate(mechanism.row_ranges()):
        for row in range(at.start, at.stop):
            kind = "linear" if row in linear else "angular" if row in angular else f"row {row}"
            groups.append((constraint, kind))
    return tuple(groups)


def _power_of_two(x: float) -> float:
    """The power of two nearest to a positive number: equal parts of a robot get the same, in any units."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(1.0, exponent if fraction >= math.sqrt(0.5) else exponent - 1)
