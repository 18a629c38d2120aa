"""How soft a compiled MuJoCo model says that its contacts, limits, dry friction and equality constraints are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from delassus.model.impedance import Impedance, Impedances, Named
from delassus.model.parts import WORLD
from delassus.model.readers.mjcf_names import MjcfNames
from delassus.model.readers.mjcf_tree import MjcfTree

_SAME: Final = 1e-12
"""Distance [m] of centres of mass that are the same."""

_CONNECT, _WELD = range(2)  # mjtEq
_SITE = 6  # mjOBJ_SITE


def shape_impedance(mujoco: Any, m: Any, tree: MjcfTree, g: int) -> dict[str, Any]:
    """The fields of a `Geometry`; those of the option that overrides all contacts, if it is on."""
    center = center_of_body(m, tree, int(m.geom_bodyid[g]))
    return {**_contact(mujoco, m, "geom", g), "solmix": float(m.geom_solmix[g]), "center": center}


def pair_impedance(mujoco: Any, m: Any, k: int) -> dict[str, Any]:
    """The fields of a `ContactPair`."""
    numbers = tuple(m.pair_solreffriction[k].tolist())
    return {**_contact(mujoco, m, "pair", k), "solreffriction": numbers if any(numbers) else ()}


def _contact(mujoco: Any, m: Any, what: str, k: int) -> dict[str, Any]:
    if int(m.opt.enableflags) & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE):
        # Margins of two shapes add up to that of the option.
        margin = float(m.opt.o_margin) * (0.5 if what == "geom" else 1.0)
        solref, solimp = m.opt.o_solref, m.opt.o_solimp
    else:
        margin = float(getattr(m, f"{what}_margin")[k])
        solref, solimp = (getattr(m, f"{what}_{name}")[k] for name in ("solref", "solimp"))
    return {"margin": margin, "solref": tuple(solref.tolist()), "solimp": tuple(solimp.tolist())}


def center_of_body(m: Any, tree: MjcfTree, body: int) -> tuple[float, ...]:
    """The centre of mass of a body in its joint's frame; empty if it is that of all that the joint carries."""
    joint, at = tree.placed(body, m.body_ipos[body])
    if joint == WORLD or np.allclose(at.p, tree.joints[joint].inertia.com, atol=_SAME):
        return ()
    return tuple(at.p.tolist())


def _equality(m: Any, tree: MjcfTree, k: int) -> Impedance:
    own = Impedance(tuple(m.eq_solref[k].tolist()), tuple(m.eq_solimp[k].tolist()))
    if m.eq_type[k] not in (_CONNECT, _WELD):
        return own
    bodies = [int(m.eq_obj1id[k]), int(m.eq_obj2id[k])]
    if m.eq_objtype[k] == _SITE:
        bodies = [int(m.site_bodyid[site]) for site in bodies]
    centers = tuple(center_of_body(m, tree, body) for body in bodies)
    return replace(own, centers=centers) if any(centers) else own


def impedances(m: Any, tree: MjcfTree, names: MjcfNames) -> Impedances:
    """Those of rows that are no contacts."""
    constraints = ((name, _equality(m, tree, k)) for name, k in _numbered(names.equalities))
    dofs = [(names.joints[j], int(m.jnt_dofadr[j])) for j in range(m.njnt)]
    return Impedances(
        joint_limits=_named(_numbered(names.joints), m.jnt_solref, m.jnt_solimp),
        joint_friction=_named(dofs, m.dof_solref, m.dof_solimp),
        tendon_limits=_named(_numbered(names.tendons), m.tendon_solref_lim, m.tendon_solimp_lim),
        constraints=tuple((name, own) for name, own in constraints if own != Impedance()),
        impratio=float(m.opt.impratio),
    )


def _numbered(names: Any) -> list[tuple[str, int]]:
    """Names with their numbers."""
    return [(name, k) for k, name in enumerate(names)]


def _named(rows: list[tuple[str, int]], solref: Any, solimp: Any) -> Named:
    every = ((name, Impedance(tuple(solref[k].tolist()), tuple(solimp[k].tolist()))) for name, k in rows)
    return tuple((name, own) for name, own in every if own != Impedance())
