"""Inertias of rigid bodies: mass [kg], center of mass (3,) [m] and rotational inertia (3, 3) [kg·m²].

The rotational inertia is about the center of mass. It has the axes of the frame that the center refers to. A mass may
be zero: a body without mass has its center at the origin.
"""

from typing import Any

import delassus.numpy as np


def inertia_parameters(mass: Any, com: Any, rotational: Any) -> Any:
    """The inertial parameters (10,): m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin.

    Inverse dynamics is linear in them.
    """
    about_origin = rotational + mass * _unit_mass_inertia(com)
    xx, xy, yy = about_origin[0, 0], about_origin[0, 1], about_origin[1, 1]
    xz, yz, zz = about_origin[0, 2], about_origin[1, 2], about_origin[2, 2]
    return np.array([mass, mass * com[0], mass * com[1], mass * com[2], xx, xy, yy, xz, yz, zz])


def inertia_from_parameters(parameters: Any) -> tuple[Any, Any, Any]:
    """Mass, center of mass and rotational inertia of ten parameters (10,), as `inertia_parameters` orders them."""
    mass = parameters[0]
    com = parameters[1:4] / _nonzero(mass)
    xx, xy, yy, xz, yz, zz = (parameters[k] for k in range(4, 10))
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return mass, com, about_origin - mass * _unit_mass_inertia(com)


def _unit_mass_inertia(d: Any) -> Any:
    """|d|² 1 - d dᵀ (3, 3): the rotational inertia of a unit mass about a point at the distance d (3,)."""
    x, y, z = d[0], d[1], d[2]
    return np.array(
        [
            [y * y + z * z, -x * y, -z * x],
            [-x * y, z * z + x * x, -y * z],
            [-z * x, -y * z, x * x + y * y],
        ]
    )


def _nonzero(mass: Any) -> Any:
    """The mass as a divisor: 1 in place of 0."""
    return np.where(mass == 0.0, 1.0, mass)
