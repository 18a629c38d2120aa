"""Stage 6 of a step: the configuration and velocity at its end.

    v⁺ = v_f + M̂⁻¹ Jᵀ λ
    q⁺ = q ⊕ (h v⁺ + δ)                            δ corrects penetrations and does not change v⁺

In flight, velocity products are averaged over the step, which is accurate to second order; gravity and motor forces act
at its beginning. In contact, positions are integrated with v⁺, whose row velocities J v⁺ satisfy the contact laws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.step.scene import ARTICULATED, Scene
from delassus.step.scheme.components import Component, turning_dofs
from delassus.step.scheme.energy import Kick
from delassus.step.scheme.manifold_step import integrate_velocity
from delassus.step.scheme.restoration import Allowances, PartContact, is_articulated, part_allowances, shared_excess
from delassus.step.scheme.world_contact import is_alone, is_grounded
from delassus.step.stages.assemble import StepSystem
from delassus.step.stages.close_loops import loop_factors
from delassus.step.stages.collide import Contacts
from delassus.step.stages.correction import correct_penetration
from delassus.step.stages.kinematics import Kinematics
from delassus.step.stages.types import Impulses, StepState


class Motion(NamedTuple):
    """The state at the end of a step, before loops are closed.

    Attributes:
        q: (nq,) configuration.
        v: (nv,) velocity, in the body axes at the end of the step.
        allowances: The allowed energy and momentum of each articulated part.
        angle: () the largest rotation [rad] of a joint.
        substeps: () the largest number of substeps that the flight of a free body needs.
    """

    q: Any
    v: Any
    allowances: Allowances
    angle: Any
    substeps: Any


def integrate(
    scene: Scene,
    state: StepState,
    kinematics: Kinematics,
    contacts: Contacts,
    system: StepSystem,
    v: Any,
    impulses: Impulses,
    time_step: Any,
) -> Motion:
    """The state after a step with the velocity v (nv,) and the impulses of the solved system."""
    h, impulse = time_step, impulses.impulse
    if scene.is_soft:  # no position correction: the contact law itself reduces penetrations
        v = v - system.spin
        turns = turning_dofs(scene.model, system.parts)
        angle = h * np.max(np.abs(v[turns])) if turns else np.array(0.0)
        q, v, substeps = integrate_velocity(scene.model, system.parts, state.q, v, h)
        return Motion(q, v, [], angle, substeps)
    shift = correct_penetration(scene, contacts, system, v, h)
    kicked = _kicked_velocity(scene, system, state, impulses)
    kick = Kick(state.v, v, h * system.products, kicked)
    if scene.method == ARTICULATED:  # v solves the equation of motion to a tolerance; momentum is kept to rounding
        force = h * (system.forces.force + system.weight)
        kick = kick._replace(impulse=force + system.rows.joint_impulses(impulse) if scene.m else force)
    allowances = _allowances(scene, state, kinematics, contacts, system, kick, impulse, shift, h)
    for part, allowance in allowances:
        dofs = list(part.dofs)
        shift[dofs] = shift[dofs] + np.where(allowance.flies, 0.5 * h, 0.0) * (kicked - v)[dofs]
    turning = turning_dofs(scene.model, system.parts)
    angle = h * np.max(np.abs(v[turning])) if turning else np.array(0.0)
    q, v, substeps = integrate_velocity(scene.model, system.parts, state.q, v, h, h * v + shift)
    return Motion(q, v, allowances, angle, substeps)


def _kicked_velocity(scene: Scene, system: StepSystem, state: StepState, impulses: Impulses) -> Any:
    """The velocity (nv,) after forces and joint friction act, without velocity products, with loops kept closed."""
    change, loops, impulse = system.kick, scene.bilateral, impulses.impulse
    if scene.friction_rows:
        friction = np.zeros(scene.m)
        friction[scene.friction_rows[0] :] = impulse[scene.friction_rows[0] :]
        change = change + system.respond(friction)
    if impulses.servo is not None and system.forces.servos is not None:
        change = change + system.solve(impulses.servo)
    if scene.mechanism.m:
        reaction = np.zeros(scene.m)
        reaction[loops] = -loop_factors(scene, system).solve(system.velocities(change)[loops])
        change = change + system.respond(reaction)
    return state.v + change


# --- energy and momentum ----------------------------------------------------------------------------------------------


def _allowances(
    scene: Scene,
    state: StepState,
    kinematics: Kinematics,
    contacts: Contacts,
    system: StepSystem,
    kick: Kick,
    impulse: Any,
    shift: Any,
    time_step: Any,
) -> Allowances:
    """The allowed momentum and energy of each articulated part after a step with row impulses (m,).

    Contacts may not add energy, nor may the displacement (nv,) that corrects penetrations: the potential energy that it
    adds is subtracted.
    """
    articulated = [part for part in system.parts if is_articulated(part)]
    if not articulated:
        return []
    pushing, rubbing = np.array(impulse), np.array(impulse)
    rubbing[scene.bilateral] = 0.0
    pushing[scene.bilateral] = 0.0
    pushing[scene.m - len(scene.friction_rows) :] = 0.0

    by_contacts, by_friction = system.rows.joint_impulses(pushing), system.rows.joint_impulses(rubbing)
    excess, touched = shared_excess(system.parts, by_friction, kick.after, [kick.before]), []
    for part in articulated:
        dofs = list(part.dofs)
        lifted = -(system.weight[dofs] @ shift[dofs])
        touches = _touches_world(scene, kinematics, contacts, part)
        grounded = is_grounded(scene, kinematics.tree, part, pushing, touches)
        gained = excess[system.parts.index(part)] + np.maximum(lifted, 0.0)
        alone = ~grounded & is_alone(scene, system.parts, pushing)
        touched.append(PartContact(gained, grounded, alone, np.all(by_contacts[dofs] == 0.0)))
    return part_allowances(scene.model, state.q, system.inertia, kick, system.parts, touched, time_step)


def _touches_world(scene: Scene, kinematics: Kinematics, contacts: Contacts, part: Component) -> Any:
    """Whether each selected contact (slots,) is between a part and the world."""
    inside = [_root(scene, kinematics, k) in part.roots for k in range(scene.ground_candidates)]
    if not any(inside):
        return [False] * scene.slots
    if not scene.has_pairs and all(inside):
        return [True] * scene.slots
    on_ground = [*map(float, inside), *[0.0] * (scene.candidates - scene.ground_candidates)]
    return np.take(numpy.array(on_ground), contacts.candidate) > 0.5


def _root(scene: Scene, kinematics: Kinematics, candidate: int) -> int:
    """The root link of the tree that carries a candidate for contact with the ground."""
    geometry = scene.candidate_shapes[candidate][0].geometry
    link: int = kinematics.tree.place(geometry.joint, geometry.placement)[0]
    return kinematics.tree.path(link)[0] if link >= 0 else link
