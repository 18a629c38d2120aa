"""The medium of a compiled MuJoCo model, and the shapes it acts on.

A body feels it as a box of its mass and inertia, or as the ellipsoids of its shapes if any of them has
`fluidshape="ellipsoid"`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from delassus.model.parts import NO_MEDIUM, WORLD, ImmersedShape, Medium
from delassus.model.readers.mjcf_tree import MjcfTree

_LEAST: Final = 1e-15  # mjMINVAL
_PASSIVE: Final = ("mjDSBL_SPRING", "mjDSBL_DAMPER")
"""Flags that together disable all passive forces."""


def read_medium(mujoco: Any, m: Any, tree: MjcfTree) -> Medium:
    """The medium; without one, or with passive forces disabled, one that nothing feels."""
    flags = [int(m.opt.disableflags) & int(getattr(mujoco.mjtDisableBit, name)) for name in _PASSIVE]
    if all(flags) or not (m.opt.density or m.opt.viscosity):
        return NO_MEDIUM
    shapes: list[ImmersedShape] = []
    for b in range(1, m.nbody):
        if tree.bodies[b][0] == WORLD or m.body_mass[b] < _LEAST:
            continue
        start = int(m.body_geomadr[b])
        geoms = [g for g in range(start, start + int(m.body_geomnum[b])) if m.geom_fluid[g, 0] > 0.0]
        shapes += [_ellipsoid(mujoco.mjtGeom, m, tree, g) for g in geoms] or [_box(m, tree, b)]
    return Medium(float(m.opt.density), float(m.opt.viscosity), tuple(m.opt.wind.tolist()), tuple(shapes))


def _box(m: Any, tree: MjcfTree, b: int) -> ImmersedShape:
    """The box of a body's mass and inertia."""
    inertia = m.body_inertia[b]
    sides = np.sqrt(np.maximum(inertia.sum() - 2.0 * inertia, _LEAST) / m.body_mass[b] * 6.0)
    return ImmersedShape(*tree.placed(b, m.body_ipos[b], m.body_iquat[b]), tuple(sides.tolist()))


def _ellipsoid(kinds: Any, m: Any, tree: MjcfTree, g: int) -> ImmersedShape:
    joint, placement = tree.placed(m.geom_bodyid[g], m.geom_pos[g], m.geom_quat[g])
    scale, blunt, slender, angular, kutta, magnus = m.geom_fluid[g, :6].tolist()
    factors = [scale * x for x in (blunt, slender, angular, kutta, magnus)]
    added = scale * m.geom_fluid[g, 6:12]
    axes = _half_axes(kinds, m, g)
    return ImmersedShape(joint, placement, axes, tuple(factors), tuple(added[:3].tolist()), tuple(added[3:].tolist()))


def _half_axes(kinds: Any, m: Any, g: int) -> tuple[float, ...]:
    """Those of the ellipsoid that stands for a shape [m]."""
    a, b, c = m.geom_size[g].tolist()
    match kinds(int(m.geom_type[g])):
        case kinds.mjGEOM_SPHERE:
            return a, a, a
        case kinds.mjGEOM_CAPSULE:
            return a, a, b + a
        case kinds.mjGEOM_CYLINDER:
            return a, a, b
        case _:
            return a, b, c
