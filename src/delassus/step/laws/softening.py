"""Scenes under MuJoCo's contact law: impedance and reference of each row.

All values are those of the model's file, combined by MuJoCo's rules. The shape with the larger priority determines
those of a contact. If priorities are equal, `solref` and `solimp` are averaged with the weights `solmix`; a `solref`
with stiffness and damping takes the smaller of each value; margins are added. A pair that the file lists has its own
values. Everything else, such as a robot from URDF or the ground of a simulation, has MuJoCo's defaults.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from delassus.constraints.kinds.tendon_length import TendonLength
from delassus.model.parts import WORLD, ContactPair, Geometry, Impedance, NamedImpedances
from delassus.model.placement import HERE
from delassus.step.scene import Scene
from delassus.step.sources.impedances import ContactImpedance, SceneImpedances

_LEAST: Final = 1e-15
"""Smaller weights `solmix` count as zero."""

_GROUND: Final = Geometry("ground", WORLD, HERE, "plane", (0.0, 0.0), "collision")
"""The default plane."""


def soften(scene: Scene, plane: Geometry | None) -> Scene:
    """A scene with compliant rows; `plane` is the ground of the model's file, or None.

    The scene has a row for each joint limit, since these cost hardly anything.
    """
    scene = replace(scene, max_limits=None if scene.max_limits else 0, as_in_mujoco=True)
    own, usual = scene.model.impedances, Impedance()
    limits, ties = dict(own.joint_limits), dict(own.constraints)
    one_sided = _tendon_limits(own.tendon_limits) | {f"{name}_limit": row for name, row in own.joint_limits}
    impedances = SceneImpedances(
        contacts=_contacts(scene, plane or _GROUND),
        constraints=tuple(ties.get(constraint.name, usual) for constraint in scene.mechanism.constraints),
        one_sided=tuple(one_sided.get(row.label, usual) for row in scene.one_sided),
        joint_limits=tuple(limits.get(limit.joint, usual) for limit in scene.joint_limits),
        joint_friction=_friction(scene),
        impratio=own.impratio,
    )
    return replace(scene, impedances=impedances)


def _friction(scene: Scene) -> tuple[Impedance, ...]:
    """The impedances of all rows of joint and tendon friction."""
    own, result = scene.model.impedances, []  # type: Any, list[Impedance]
    joints, tendons = dict(own.joint_friction), dict(own.tendon_friction)
    rows: tuple[Any, ...] = scene.joint_friction_rows
    for row in rows:
        named = tendons.get(row.tendon) if isinstance(row, TendonLength) else joints.get(row.joint)
        result += [named or Impedance()] * row.count(scene.model)
    return tuple(result)


def _tendon_limits(named: NamedImpedances) -> dict[str, Impedance]:
    return {f"{name}_{end}": own for name, own in named for end in ("shortest", "longest")}


def _contacts(scene: Scene, plane: Geometry) -> tuple[ContactImpedance, ...]:
    """The impedances of all candidates, in their order."""
    listed = {frozenset((p.first, p.second)): _pair_impedance(p) for p in scene.model.contact_rules.pairs}
    known: dict[tuple[Geometry, Geometry], ContactImpedance] = {}
    result = []
    for shape, other, _ in scene.candidate_shapes:
        pair = shape.geometry, plane if other is None else other.geometry
        if pair not in known:
            known[pair] = listed.get(frozenset(g.name for g in pair)) or mix_impedances(*pair)
        result.append(known[pair])
    return tuple(result)


def _pair_impedance(pair: ContactPair) -> ContactImpedance:
    usual = Impedance()
    return ContactImpedance(
        pair.solref or usual.solref,
        pair.solimp or usual.solimp,
        solreffriction=pair.solreffriction,
        margin=pair.margin,
    )


def mix_impedances(one: Geometry, two: Geometry) -> ContactImpedance:
    """The impedance of a contact of two shapes."""
    usual, margin = Impedance(), one.margin + two.margin
    references = [np.array(g.solref or usual.solref) for g in (one, two)]
    curves = [np.array(g.solimp or usual.solimp) for g in (one, two)]
    share = _first_share(one, two)
    solref = share * references[0] + (1.0 - share) * references[1]
    if one.priority == two.priority and not all(reference[0] > 0.0 for reference in references):
        solref = np.minimum(*references)
    solimp = share * curves[0] + (1.0 - share) * curves[1]
    return ContactImpedance(tuple(solref.tolist()), tuple(solimp.tolist()), margin=margin)


def _first_share(one: Geometry, two: Geometry) -> float:
    """The weight of the first of two shapes."""
    if one.priority != two.priority:
        return float(one.priority > two.priority)
    first, second = one.solmix, two.solmix
    if first >= _LEAST and second >= _LEAST:
        return first / (first + second)
    if first < _LEAST and second < _LEAST:
        return 0.5
    return float(first >= _LEAST)
