"""What of a compiled MuJoCo model is not carried over: a sentence per feature, with the names of those that have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from delassus.model.readers.mjcf_names import MjcfNames, list_names
from delassus.model.readers.mjcf_tree import FREE
from delassus.model.transmission import CARRIED, Actuator

_WRITE = "Write it as a constraint of Mechanism."
_LINEAR = "Add the rest of the force to the controls, or to joints without these."


def unsupported(
    mujoco: Any, m: Any, names: MjcfNames, skipped: Sequence[tuple[str, str]], actuators: Sequence[Actuator]
) -> list[str]:
    """Sentences on what a file has and the model has not."""
    kinds = mujoco.mjtGeom
    free = m.jnt_type == FREE
    linear_armature = [names.joints[j] for j in np.flatnonzero(free) if m.dof_armature[m.jnt_dofadr[j]] != 0.0]
    solid = (m.geom_contype | m.geom_conaffinity) != 0
    solid[np.concatenate([m.pair_geom1, m.pair_geom2])] = True
    moving = solid & (m.geom_type == int(kinds.mjGEOM_HFIELD)) & (m.body_weldid[m.geom_bodyid] != 0)
    inactive = [name for kind, name in skipped if kind == "inactive"]
    features: list[tuple[str, list[str], str]] = [
        (
            "equality constraints that are not active at the start are left out",
            inactive,
            "Set active='true' in the file, or give the constraint to Mechanism.",
        ),
        *(
            (f"equality constraints of the kind {kind!r} are left out", [n for k, n in skipped if k == kind], _WRITE)
            for kind in sorted({kind for kind, _ in skipped} - {"inactive"})
        ),
        (
            "inertia of tendons is left out",
            _where(_nonzero_rows(m, "tendon_armature"), names.tendons),
            "Give armature to the joints.",
        ),
        (
            "limits of the force of all actuators of a tendon are left out",
            _where(_nonzero_rows(m, "tendon_actfrclimited"), names.tendons),
            "Give its actuators a forcerange.",
        ),
        (
            "springs and dampers of tendons that are not linear are taken as linear",
            _where(_nonzero_rows(m, "tendon_stiffnesspoly", "tendon_dampingpoly"), names.tendons),
            _LINEAR,
        ),
        (
            "of these actuators only the affine part is kept",
            [
                f"{a.name} ({a.kind})"
                for a in actuators
                if a.drives != "body" and not CARRIED.issuperset(a.kind.split())
            ],
            "Simulations refuse them: give actuators= without them.",
        ),
        (
            "actuators that stick bodies to what they touch (adhesion) have no force",
            [a.name for a in actuators if a.drives == "body"],
            "Press by a Push, or by an actuator of a site.",
        ),
        (
            "gravity compensation by actuators counts as a passive force, not within their limits",
            _where(m.jnt_actgravcomp.astype(bool) & m.jnt_actfrclimited.astype(bool), names.joints),
            "Widen actuatorfrcrange by the weight.",
        ),
        (
            "mocap bodies are fixed where the file puts them",
            _where(m.body_mocapid >= 0, names.bodies),
            "Move them by a constraint with a reference in time.",
        ),
        (
            "the linear armature of a free joint counts in the body's axes, in MuJoCo in the world's, so accelerations "
            "differ while it turns",
            linear_armature,
            "Add the mass to the body instead.",
        ),
        (
            "springs that are not linear are taken as linear",
            _where(_any(m, "jnt_stiffnesspoly"), names.joints),
            _LINEAR,
        ),
        ("springs that yield are taken as elastic", _where(_any(m, "jnt_springyield"), names.joints), _LINEAR),
        (
            "damping that is not linear is taken as linear",
            _where(_any(m, "dof_dampingpoly"), [names.joints[j] for j in m.dof_jntid]),
            _LINEAR,
        ),
        (
            "springs of tendons that yield are taken as elastic",
            _where(_any(m, "tendon_springyield"), names.tendons),
            _LINEAR,
        ),
        (
            "damping of actuators that is not linear is taken as linear",
            _where(_any(m, "actuator_dampingpoly"), names.actuators),
            _LINEAR,
        ),
        (
            "delays of actuators are left out",
            _where(_any(m, "actuator_delay"), names.actuators),
            "Give control=dl.simulation.Delayed(control, periods).",
        ),
        (
            "shapes that stick to what they touch (adhesion) do not",
            _where(_any(m, "geom_adhesion"), names.geoms),
            "Press by a Push, or by an actuator.",
        ),
        (
            "surfaces that move, such as belts, stand still",
            _where(_any(m, "geom_surfacevel"), names.geoms),
            "Carry them by a joint with a velocity servo.",
        ),
        (
            "plugins are left out, with the forces that they would give to bodies",
            _where(_plugged(m), names.bodies),
            "Give the bodies joints with springs.",
        ),
        (
            "height fields on bodies that move are left out",
            _where(moving, names.geoms),
            "Fix them to the world, or write meshes in their place.",
        ),
        (
            "signed distance fields are left out",
            _where(solid & (m.geom_type == int(kinds.mjGEOM_SDF)), names.geoms),
            "Write meshes in their place.",
        ),
    ]
    sentences = [
        f"{what} ({len(which)}): {list_names(which)}. {remedy}".strip() for what, which, remedy in features if which
    ]
    if m.nflex:
        sentences.append(
            f"deformable bodies (flex) keep their particles and lose what holds them together: {m.nflex}. "
            "Take dl.particles."
        )
    if npairs := int(np.count_nonzero(getattr(m, "pair_adhesion", np.zeros(0)))):
        sentences.append(f"adhesion of listed pairs is left out: {npairs} pairs. Press by a Push, or by an actuator.")
    return sentences


def _any(m: Any, field: str) -> Any:
    """Which rows of a field are not zero; none if MuJoCo is older than the field."""
    values = getattr(m, field, None)
    return () if values is None else np.any(values, axis=tuple(range(1, values.ndim)))


def _nonzero_rows(m: Any, *fields: str) -> Any:
    """Which rows are not zero in any of some fields."""
    return sum((np.asarray(_any(m, field), int) for field in fields if hasattr(m, field)), np.zeros((), int))


def _plugged(m: Any) -> Any:
    """Which bodies have plugins."""
    return np.asarray(getattr(m, "body_plugin", np.full(m.nbody, -1))) >= 0


def _where(flags: Any, names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names[i] for i in np.flatnonzero(flags).tolist()))
