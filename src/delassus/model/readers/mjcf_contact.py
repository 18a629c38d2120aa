"""What a compiled MuJoCo model says of contacts: bits of its shapes, excluded bodies, listed pairs, flags."""

from __future__ import annotations

from itertools import product
from typing import Any

from delassus.model.parts import ContactPair, ContactRules
from delassus.model.readers.mjcf_impedance import pair_impedance, shape_impedance
from delassus.model.readers.mjcf_names import MjcfNames
from delassus.model.readers.mjcf_tree import MjcfTree


def contact_fields(mujoco: Any, m: Any, tree: MjcfTree, g: int) -> tuple[str, dict[str, Any]]:
    """The role of a shape, "collision" if it has bits or is in a listed pair, and its fields of contacts."""
    if not (m.geom_contype[g] or m.geom_conaffinity[g] or g in m.pair_geom1 or g in m.pair_geom2):
        return "visual", {}
    numbers = {name: int(getattr(m, f"geom_{name}")[g]) for name in ("condim", "priority", "contype", "conaffinity")}
    return "collision", {
        "friction": tuple(m.geom_friction[g].tolist()),
        **numbers,
        **shape_impedance(mujoco, m, tree, g),
    }


def contact_rules(mujoco: Any, m: Any, names: MjcfNames) -> ContactRules:
    """Rules of contact besides those of shapes."""
    off, flags = mujoco.mjtDisableBit, int(m.opt.disableflags)
    pairs = []
    for k in range(m.npair):
        sliding, _, torsional, rolling, _ = m.pair_friction[k].tolist()
        pairs.append(
            ContactPair(
                names.geoms[m.pair_geom1[k]],
                names.geoms[m.pair_geom2[k]],
                (sliding, torsional, rolling),
                int(m.pair_dim[k]),
                gap=float(m.pair_gap[k]),
                **pair_impedance(mujoco, m, k),
            )
        )
    return ContactRules(
        enabled=not flags & (int(off.mjDSBL_CONTACT) | int(off.mjDSBL_CONSTRAINT)),
        filter_parents=not flags & int(off.mjDSBL_FILTERPARENT),
        excluded=tuple(_excluded(m, names)),
        pairs=tuple(pairs),
    )


def _excluded(m: Any, names: MjcfNames) -> list[tuple[str, str]]:
    """The shapes of bodies that the file excludes from each other."""
    shapes: dict[int, list[str]] = {}
    for g in range(m.ngeom):
        if m.geom_contype[g] or m.geom_conaffinity[g]:
            shapes.setdefault(int(m.geom_bodyid[g]), []).append(names.geoms[g])
    found: list[tuple[str, str]] = []
    for signature in m.exclude_signature.tolist():
        first, second = signature >> 16, signature & 0xFFFF
        found += product(shapes.get(first, ()), shapes.get(second, ()))
    return found
