"""How soft contacts, limits, dry friction and constraints of a simulation are under MuJoCo's law of contact.

All numbers are those of the model's file, by MuJoCo's rules. Of two shapes the one with the larger priority decides; of
equals, `solref` and `solimp` are mixed with the weights `solmix`, but a `solref` of stiffness and damping is the
smaller one of each number; margins add up. A pair that the file lists has its own numbers. What says nothing, such as a robot
from URDF or the ground that is given to a simulation, has MuJoCo's defaults.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from delassus.errors import short
from delassus.geometry.candidates import Shape
from delassus.model.impedance import Impedance, Named
from delassus.model.model import Model
from delassus.model.parts import WORLD, ContactPair, Geometry
from delassus.model.placement import HERE
from delassus.simulation.checks import SimulationError
from delassus.simulation.ground import Ground
from delassus.simulation.meeting import Meeting
from delassus.simulation.scenery import ground_plane
from delassus.step.scene import Scene
from delassus.step.sources.impedances import ContactImpedance, SceneImpedances

_LEAST: Final = 1e-15
"""Weights `solmix` below are none."""


MORE_SLOTS: Final = 8
"""Contacts beyond those of the rigid law: a redundant contact that is left out makes a soft robot softer."""


def impedances_of(model: Model, scene: Scene, shapes: tuple[Shape, ...], meeting: Meeting) -> SceneImpedances:
    """Those of all rows of a scene with these shapes on the ground and these pairs."""
    own = model.impedances
    limits, friction, ties = dict(own.joint_limits), dict(own.joint_friction), dict(own.constraints)
    tendons = _tendon_limits(own.tendon_limits)
    usual = Impedance()
    return SceneImpedances(
        contacts=_contacts(model, shapes, meeting),
        constraints=tuple(ties.get(constraint.name, usual) for constraint in scene.mechanism.constraints),
        one_sided=tuple(tendons.get(row.label, usual) for row in scene.one_sided),
        joint_limits=tuple(limits.get(limit.joint, usual) for limit in scene.joint_limits),
        joint_friction=tuple(
            friction.get(row.joint, usual)  # type: ignore[attr-defined]
            for row in scene.joint_friction_rows
            for _ in range(row.count(model))
        ),
        impratio=own.impratio,
    )


def soften(scene: Scene, model: Model, shapes: tuple[Shape, ...], meeting: Meeting) -> Scene:
    """The scene under MuJoCo's law of contact, with a row for each joint limit: they cost next to nothing."""
    scene = replace(scene, max_limits=None if scene.max_limits else 0, as_in_mujoco=True)
    return replace(scene, impedances=impedances_of(model, scene, shapes, meeting))


def refuse_restitution(ground: Ground) -> None:
    """Refuse coefficients of restitution, which MuJoCo's law does not have."""
    if np.any(ground.restitution):
        raise SimulationError(
            f'law="mujoco" has no coefficient of restitution, and the ground has {short(repr(ground.restitution))}: '
            'how contacts bounce is said by solref, such as solref="-10000 -10"; leave restitution out, or choose '
            'law="rigid".',
            code="conflicting-arguments",
        )


def _tendon_limits(named: Named) -> dict[str, Impedance]:
    return {f"{name}_{end}": own for name, own in named for end in ("shortest", "longest")}


def _contacts(model: Model, shapes: tuple[Shape, ...], meeting: Meeting) -> tuple[ContactImpedance, ...]:
    """Of all candidates, in their order."""
    plane = ground_plane(model) or _ground()
    pairs = [(shape.count, (shape.geometry, plane)) for shape in shapes]
    pairs += [(c.count, (c.shape.geometry, c.other.geometry)) for c in meeting.collisions]
    pairs += [(one.points, (a.geometry, b.geometry)) for one in meeting.classes for a, b in one.pairs]
    listed = {frozenset((p.first, p.second)): _of_pair(p) for p in model.contact_rules.pairs}
    found: list[ContactImpedance] = []
    for count, (one, two) in pairs:
        found += [listed.get(frozenset((one.name, two.name))) or mix_impedances(one, two)] * count
    return tuple(found)


def _ground() -> Geometry:
    """A plane that says nothing."""
    return Geometry("ground", WORLD, HERE, "plane", (0.0, 0.0), "collision")


def _of_pair(pair: ContactPair) -> ContactImpedance:
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
    shapes = [np.array(g.solimp or usual.solimp) for g in (one, two)]
    share = _share(one, two)
    solref = share * references[0] + (1.0 - share) * references[1]
    if share not in (0.0, 1.0) and not all(reference[0] > 0.0 for reference in references):
        solref = np.minimum(*references)
    solimp = share * shapes[0] + (1.0 - share) * shapes[1]
    return ContactImpedance(tuple(solref.tolist()), tuple(solimp.tolist()), margin=margin)


def _share(one: Geometry, two: Geometry) -> float:
    """The weight of the first of two shapes."""
    if one.priority != two.priority:
        return float(one.priority > two.priority)
    first, second = one.solmix, two.solmix
    if first >= _LEAST and second >= _LEAST:
        return first / (first + second)
    if first < _LEAST and second < _LEAST:
        return 0.5
    return float(first >= _LEAST)
