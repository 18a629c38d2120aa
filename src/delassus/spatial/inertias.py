"""Inertias of rigid bodies: mass [kg], centre of mass (3,) [m] and rotational inertia (3, 3) [kg·m²].

The rotational inertia is about the centre of mass, in the axes of the frame in which the centre is given. Masses may
be zero: a body without mass has its centre at the origin.
"""

from typing import Any

import delassus.numpy as np
from delassus.spatial.rotations import skew


def inertia_matrix(mass: Any, com: Any, rotational: Any) -> Any:
    """The matrix (6, 6) about the frame's origin that takes a motion to its momentum, linear part first."""
    moment = mass * skew(com)
    return np.block([[mass * np.eye(3), -moment], [moment, rotational + mass * _from_centre(com)]])


def inertia_apply(mass: Any, com: Any, rotational: Any, motion: Any) -> Any:
    """The momentum (6,) [kg·m/s, kg·m²/s] of a motion (6,), or the force of an acceleration, without the matrix."""
    linear = mass * (motion[:3] + np.cross(motion[3:], com))
    return np.concatenate([linear, rotational @ motion[3:] + np.cross(com, linear)])


def move_inertia(R: Any, p: Any, mass: Any, com: Any, rotational: Any) -> tuple[Any, Any, Any]:
    """The inertia of a body of the child's frame, in the parent's, where the child stands at (R, p)."""
    return mass, R @ com + p, R @ rotational @ R.T


def merge_inertias(
    mass_a: Any, com_a: Any, rotational_a: Any, mass_b: Any, com_b: Any, rotational_b: Any
) -> tuple[Any, Any, Any]:
    """The inertia of two bodies of one frame that are fixed to each other."""
    mass = mass_a + mass_b
    safe = _or_one(mass)
    com = (mass_a * com_a + mass_b * com_b) / safe
    between = (mass_a * mass_b / safe) * _from_centre(com_b - com_a)
    return mass, com, rotational_a + rotational_b + between


def inertia_parameters(mass: Any, com: Any, rotational: Any) -> Any:
    """The ten numbers (10,) in which dynamics is linear: m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin."""
    about_origin = rotational + mass * _from_centre(com)
    xx, xy, yy = about_origin[0, 0], about_origin[0, 1], about_origin[1, 1]
    xz, yz, zz = about_origin[0, 2], about_origin[1, 2], about_origin[2, 2]
    return np.array([mass, mass * com[0], mass * com[1], mass * com[2], xx, xy, yy, xz, yz, zz])


def inertia_from_parameters(parameters: Any) -> tuple[Any, Any, Any]:
    """Mass, centre of mass and rotational inertia of ten parameters (10,), as `inertia_parameters` orders them."""
    mass = parameters[0]
    com = parameters[1:4] / _or_one(mass)
    xx, xy, yy, xz, yz, zz = (parameters[k] for k in range(4, 10))
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return mass, com, about_origin - mass * _from_centre(com)


def _from_centre(d: Any) -> Any:
    """|d|² 1 - d dᵀ (3, 3): the rotational inertia of a unit mass about a point at the distance d (3,)."""
    x, y, z = d[0], d[1], d[2]
    return np.array(
        [
            [y * y + z * z, -x * y, -z * x],
            [-x * y, z * z + x * x, -y * z],
            [-z * x, -y * z, x * x + y * y],
        ]
    )


def _or_one(mass: Any) -> Any:
    """The mass, or 1 in place of 0, to divide by."""
    return np.where(mass == 0.0, 1.0, mass)
