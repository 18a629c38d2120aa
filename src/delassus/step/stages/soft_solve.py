"""Stage 5 of a step under MuJoCo's contact law, by a primal Newton method (see `primal.newton`)."""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.constraints.basis.motions import LinkMotions
from delassus.contact.cones.parameters import RowParameters
from delassus.dynamics.mass.factor import ancestors
from delassus.model.links import links_of
from delassus.step.actuators.forces import Forces
from delassus.step.primal.costs import ContactCost
from delassus.step.primal.newton import Block, PrimalProblem, PrimalState, Single, SoftServo, minimize
from delassus.step.scene import Scene
from delassus.step.stages.assemble import StepSystem
from delassus.step.stages.collide import candidate_links
from delassus.step.stages.types import Impulses, SolverLimits


def solve_softly(
    scene: Scene,
    system: StepSystem,
    parameters: RowParameters,
    time_step: Any,
    limits: SolverLimits,
) -> Impulses:
    """Impulses and velocity of a step under MuJoCo's contact law."""
    problem = primal_problem(scene, system, parameters, time_step)
    inverse = 1.0 / np.stack([problem.M[k, k] for k in range(scene.nv)])

    def error(now: PrimalState) -> Any:
        return np.max(np.abs(now.gradient) * inverse)

    def should_continue(now: PrimalState) -> Any:
        return (error(now) > limits.tolerance * system.scale) & (now.count < limits.iterations)

    start = system.free_velocity + system.respond(system.start) if scene.m else system.free_velocity
    end = minimize(problem, start, should_continue)
    residual = error(end)
    done = residual <= limits.tolerance * system.scale
    return Impulses(-end.slopes[: scene.m], residual, end.count, done, np.array(1.0), end.u, np.zeros(scene.nv))


def primal_problem(scene: Scene, system: StepSystem, parameters: RowParameters, time_step: Any) -> PrimalProblem:
    """The convex problem of a step."""
    soft, forces = system.soft, system.forces
    M = np.array(system.inertia)
    if forces.added is not None:
        M = M + np.diag(forces.added)
    for term in forces.rank_ones:
        for i in term.dofs:
            for j in term.dofs:
                M[i, j] = M[i, j] + term.coefficient * (term.moment_arms[i] * term.moment_arms[j])
    blocks = _blocks(scene, system, _costs(scene, soft.contacts, parameters))
    singles, servos = _singles(scene, system, parameters), _servos(forces, time_step)
    above = _coupled(scene, forces)
    return PrimalProblem(above, M, system.free_velocity, soft.target, blocks, singles, servos)


def _costs(scene: Scene, stiffness: Any, parameters: RowParameters) -> list[ContactCost]:
    """The cost of each slot, from normal stiffnesses (slots,) and friction coefficients."""
    impratio = scene.impedances.impratio if scene.impedances else 1.0
    costs = []
    for k in range(scene.slots):
        own = [parameters.friction[k]] * 2
        if scene.contact_rows > 3:
            own.append(parameters.torsional[k])
        if scene.contact_rows > 4:
            own += [parameters.rolling[k]] * 2
        costs.append(ContactCost.of(own, stiffness[k], impratio))
    return costs


def _blocks(scene: Scene, system: StepSystem, costs: list[ContactCost]) -> list[Block]:
    """Contacts grouped by body."""
    J, sharing, count = system.rows.J, system.rows.sharing, scene.contact_rows
    rows = [list(range(count * k, count * (k + 1))) for k in range(scene.slots)]
    if sharing is None:
        return [Block(J[own], [(own, None, cost)]) for own, cost in zip(rows, costs, strict=True)]
    return [
        Block(J[at], [(rows[k], sharing.P[rows[k]][:, at] if len(some) > 1 else None, costs[k]) for k in some])
        for at, some in sharing.bodies
    ]


def _singles(scene: Scene, system: StepSystem, parameters: RowParameters) -> list[Single]:
    """The rows other than contacts, each with its own cost."""
    J, end = system.rows.J, scene.contact_end
    shift = len(J) - scene.m
    motions = LinkMotions.of(scene.model, scene.model.neutral(), numpy.zeros(scene.nv))
    dofs: dict[int, list[int]] = {}
    for row, limit in zip(scene.limit_rows, scene.joint_limits, strict=True):
        dofs[row] = [limit.joints(motions)[0].v]
    for row, dof in zip(scene.friction_rows, scene.friction_dofs, strict=False):  # rows of tendons come last
        dofs[row] = [dof]
    found = []
    for row in range(end, scene.m):
        kind, bound = "bilateral", None
        if row in scene.stop_rows:
            kind = "one-sided"
        elif row in scene.friction_rows:
            kind, bound = "friction", parameters.upper[row - scene.friction_rows[0]]
        factors = {j: J[row + shift, j] for j in dofs.get(row, range(scene.nv))}
        found.append(Single(row, factors, system.soft.others[row - end], kind, bound))
    return found


def _servos(forces: Forces, h: Any) -> list[SoftServo]:
    """Servos with force limits; the system of the step contains them without their limits."""
    servos = forces.servos
    if servos is None:
        return []
    found = []
    for k, arms in enumerate(servos.moment_arms):
        slope = h * np.minimum(servos.slope[k], 0.0)
        factors = {j: arms[j] for j in servos.dofs[k]}
        pull = h * servos.pull[k] - slope * servos.rate[k]
        found.append(SoftServo(factors, pull, slope, h * servos.lower[k], h * servos.upper[k]))
    return found


def _coupled(scene: Scene, forces: Forces) -> list[list[int]] | None:
    """For each velocity, those to which the matrix couples it; None if the matrix is dense."""
    world = len(links_of(scene.model).links)
    with_world = [world in pair for pair in zip(*candidate_links(scene, links_of(scene.model)), strict=True)]
    some = range(scene.candidates) if not scene.has_fixed_slots else scene.slot_candidates[: scene.slots]
    joins = not all(with_world[k] for k in some)
    if scene.mechanism.m or scene.one_sided or scene.friction_tendons or joins:
        return None
    groups = [list(term.dofs) for term in forces.rank_ones]
    groups += [list(dofs) for dofs in (forces.servos.dofs if forces.servos is not None else ()) if len(dofs) > 1]
    return ancestors(scene.model, groups)
