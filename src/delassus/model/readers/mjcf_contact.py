"""What a compiled MuJoCo model says of contacts: bits of its shapes, excluded bodies, listed pairs, flags; and how
soft contacts, limits, dry friction and equality constraints are."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Final

import numpy as np

from delassus.model.parts import WORLD, ContactPair, ContactRules, Impedance, Impedances, NamedImpedances
from delassus.model.readers.mjcf_names import MjcfNames
from delassus.model.readers.mjcf_tree import MjcfTree

_SAME: Final = 1e-12
"""Distance [m] of centres of mass that are the same."""

_CONNECT, _WELD = range(2)  # mjtEq
_SITE = 6  # mjOBJ_SITE


def contact_fields(mujoco: Any, m: Any, tree: MjcfTree, g: int) -> tuple[str, dict[str, Any]]:
    """The role of a shape, "collision" if it has bits or is in a listed pair, and its fields of contacts."""
    if not (m.geom_contype[g] or m.geom_conaffinity[g] or g in m.pair_geom1 or g in m.pair_geom2):
        return "visual", {}
    integers = {name: int(getattr(m, f"geom_{name}")[g]) for name in ("condim", "priority", "contype", "conaffinity")}
    return "collision", {
        "friction": _friction_override(mujoco, m) or tuple(m.geom_friction[g].tolist()),
        **integers,
        **shape_impedance(mujoco, m, tree, g),
    }


def contact_rules(mujoco: Any, m: Any, names: MjcfNames) -> ContactRules:
    """Rules of contact besides those of shapes."""
    disable_bits, flags = mujoco.mjtDisableBit, int(m.opt.disableflags)
    pairs, override = [], _friction_override(mujoco, m)
    for k in range(m.npair):
        sliding, _, torsional, rolling, _ = m.pair_friction[k].tolist()
        pairs.append(
            ContactPair(
                names.geoms[m.pair_geom1[k]],
                names.geoms[m.pair_geom2[k]],
                override or (sliding, torsional, rolling),
                int(m.pair_dim[k]),
                gap=float(m.pair_gap[k]),
                **pair_impedance(mujoco, m, k),
            )
        )
    return ContactRules(
        enabled=not flags & (int(disable_bits.mjDSBL_CONTACT) | int(disable_bits.mjDSBL_CONSTRAINT)),
        filter_parents=not flags & int(disable_bits.mjDSBL_FILTERPARENT),
        excluded=tuple(_excluded(m, names)),
        pairs=tuple(pairs),
    )


def _overrides_contacts(mujoco: Any, m: Any) -> bool:
    """Whether the option's values replace those of all contacts."""
    return bool(int(m.opt.enableflags) & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE))


def _friction_override(mujoco: Any, m: Any) -> tuple[float, ...]:
    """The option's sliding, torsional and rolling friction of all contacts; empty if it overrides none."""
    return tuple(m.opt.o_friction[[0, 2, 3]].tolist()) if _overrides_contacts(mujoco, m) else ()


def _excluded(m: Any, names: MjcfNames) -> list[tuple[str, str]]:
    """The shapes of bodies that the file excludes from each other."""
    shapes: dict[int, list[str]] = {}
    for g in range(m.ngeom):
        if m.geom_contype[g] or m.geom_conaffinity[g]:
            shapes.setdefault(int(m.geom_bodyid[g]), []).append(names.geoms[g])
    pairs: list[tuple[str, str]] = []
    for signature in m.exclude_signature.tolist():
        first, second = signature >> 16, signature & 0xFFFF
        pairs += product(shapes.get(first, ()), shapes.get(second, ()))
    return pairs


# --- how soft rows are ---


def shape_impedance(mujoco: Any, m: Any, tree: MjcfTree, g: int) -> dict[str, Any]:
    """The fields of a `Geometry`; those of the option that overrides all contacts, if it is on."""
    center = center_of_body(m, tree, int(m.geom_bodyid[g]))
    return {**_contact(mujoco, m, "geom", g), "solmix": float(m.geom_solmix[g]), "center": center}


def pair_impedance(mujoco: Any, m: Any, k: int) -> dict[str, Any]:
    """The fields of a `ContactPair`."""
    friction_solref = tuple(m.pair_solreffriction[k].tolist())
    return {**_contact(mujoco, m, "pair", k), "solreffriction": friction_solref if any(friction_solref) else ()}


def _contact(mujoco: Any, m: Any, prefix: str, k: int) -> dict[str, Any]:
    if _overrides_contacts(mujoco, m):
        # Margins of two shapes add up to that of the option.
        margin = float(m.opt.o_margin) * (0.5 if prefix == "geom" else 1.0)
        solref, solimp = m.opt.o_solref, m.opt.o_solimp
    else:
        margin = float(getattr(m, f"{prefix}_margin")[k])
        solref, solimp = (getattr(m, f"{prefix}_{name}")[k] for name in ("solref", "solimp"))
    return {"margin": margin, "solref": tuple(solref.tolist()), "solimp": tuple(solimp.tolist())}


def center_of_body(m: Any, tree: MjcfTree, body: int) -> tuple[float, ...]:
    """The centre of mass of a body in its joint's frame; empty if it is that of all that the joint carries."""
    joint, at = tree.placed(body, m.body_ipos[body])
    if joint == WORLD or np.allclose(at.p, tree.joints[joint].inertia.com, atol=_SAME):
        return ()
    return tuple(at.p.tolist())


def _equality(m: Any, tree: MjcfTree, k: int) -> Impedance:
    impedance = Impedance(tuple(m.eq_solref[k].tolist()), tuple(m.eq_solimp[k].tolist()))
    if m.eq_type[k] not in (_CONNECT, _WELD):
        return impedance
    bodies = [int(m.eq_obj1id[k]), int(m.eq_obj2id[k])]
    if m.eq_objtype[k] == _SITE:
        bodies = [int(m.site_bodyid[site]) for site in bodies]
    centers = tuple(center_of_body(m, tree, body) for body in bodies)
    return replace(impedance, centers=centers) if any(centers) else impedance


def impedances(m: Any, tree: MjcfTree, names: MjcfNames) -> Impedances:
    """Those of rows that are no contacts."""
    constraints = ((name, _equality(m, tree, k)) for name, k in _numbered(names.equalities))
    dofs = [(names.joints[j], int(m.jnt_dofadr[j])) for j in range(m.njnt)]
    return Impedances(
        joint_limits=_named(_numbered(names.joints), m.jnt_solref, m.jnt_solimp),
        joint_friction=_named(dofs, m.dof_solref, m.dof_solimp),
        tendon_friction=_named(_numbered(names.tendons), m.tendon_solref_fri, m.tendon_solimp_fri),
        tendon_limits=_named(_numbered(names.tendons), m.tendon_solref_lim, m.tendon_solimp_lim),
        constraints=tuple((name, impedance) for name, impedance in constraints if impedance != Impedance()),
        impratio=float(m.opt.impratio),
    )


def _numbered(names: Any) -> list[tuple[str, int]]:
    """Names with their numbers."""
    return [(name, k) for k, name in enumerate(names)]


def _named(rows: list[tuple[str, int]], solref: Any, solimp: Any) -> NamedImpedances:
    impedances_by_name = ((name, Impedance(tuple(solref[k].tolist()), tuple(solimp[k].tolist()))) for name, k in rows)
    return tuple((name, impedance) for name, impedance in impedances_by_name if impedance != Impedance())
