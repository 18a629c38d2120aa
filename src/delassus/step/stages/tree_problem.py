"""Stage 5 of a step inside the articulated-body recursion: see `articulated.newton`.

The problem has the M̂ and v_f of the step's system without the terms of servos with limits (see `drive`):

    M = M̂ - servos,   rhs = M̂ v_f - servos,   offset = g - J v_f

Limits, friction and servos of joints are scalar laws of the recursion and need no rows. The results are those of the
other solvers: impulses of all rows, including limits and friction of joints. `servo` is the difference between the
servo impulses and those that the step's system assumes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.systems.scaled import LARGEST_FRICTION, shape_of
from delassus.dynamics.tree.sums import model_armature
from delassus.model.links import Links
from delassus.step.articulated.joint_laws import JointLaw, JointLaws, ServoLaw
from delassus.step.articulated.newton import NewtonStart, NewtonState, TreeProblem, iterate, project_in_own_metric
from delassus.step.articulated.qualification import candidate_responses
from delassus.step.articulated.tree_solve import world_inertias
from delassus.step.scene import Scene
from delassus.step.stages.assemble import StepSystem
from delassus.step.stages.collide import Contacts, candidate_links
from delassus.step.stages.kinematics import Kinematics
from delassus.step.stages.solve import WANTED
from delassus.step.stages.types import SolverLimits, StepState

_SOFTER: Final = 0.3
"""R as a fraction of the response of a single contact on a passive robot, which other contacts and servos reduce.
Measured on feet with four points: this value takes a sixth fewer iterations than 1; ten times more or less takes a
third more."""

_LEAST: Final = 1e-8
"""Smallest response of a row, as a fraction of the normal response: a row whose friction coefficient is zero would
have none."""

_FIRST: Final = 8
"""Number of contacts in the first group."""

_ORDER: Final = (0, 1, 3, 4, 5, 2)
"""Order of the rows of a contact, with the normal last."""


PATIENTLY: Final = 120.0
"""Iterations after which a state is left to the Delassus matrix, which costs as much as hundreds of them."""


class TreeSolution(NamedTuple):
    """Impulses (m,), residual [m/s], number of iterations, whether the tolerance is met, velocity (nv,), and servo
    impulses (nv,) minus those in the step's system."""

    impulse: Any
    residual: Any
    iterations: Any
    done: Any
    velocity: Any
    servo: Any


class _Servos(NamedTuple):
    """Servos with limits: the law of each by velocity index, and their terms in the step's system, which are a diagonal
    (nv,) and an impulse (nv,) at zero velocity."""

    laws: dict[int, ServoLaw]
    diagonal: Any
    impulse: Any


class TreeSolver(NamedTuple):
    """The problem of a step, the servo terms of its system, and the order and units of its contacts."""

    scene: Scene
    system: StepSystem
    problem: TreeProblem
    servos: _Servos
    factors: Any
    limits: SolverLimits

    def solve(self, g: Any, start: Any) -> TreeSolution:
        """The solution for row velocities g (m,), from initial impulses (m,) of all rows."""
        scene, system, problem = self.scene, self.system, self.problem
        count, slots, end = scene.contact_rows, scene.slots, scene.contact_end
        order = list(_ORDER[-1:] if count == 1 else [k for k in _ORDER if k < count])
        shape = self.factors.reshape(slots, count)
        bias = (g - system.after)[:end].reshape(slots, count)
        problem = problem._replace(offset=[(bias[k] * shape[k])[order] for k in range(slots)])
        given = start[:end].reshape(slots, count)
        impulse = np.where(shape > 0.0, given / np.where(shape > 0.0, shape, 1.0), 0.0)[:, order]
        v = system.free_velocity + system.respond(start)
        p = problem.laws.servo_impulse(v)
        if scene.m > end:
            p = p + system.rows.J[end - scene.m :].T @ start[end:]
        last = iterate(problem, NewtonStart(v, p, impulse), system.free_velocity, self._should_continue)
        return self._result(last, order, shape)

    def _should_continue(self, now: NewtonState) -> Any:
        wanted = np.take(np.array(WANTED), np.minimum(now.count, float(len(WANTED) - 1))) * self.limits.tolerance
        return (now.now.error > wanted * self.system.scale) & (now.count < self.limits.iterations)

    def _result(self, last: NewtonState, order: list[int], shape: Any) -> TreeSolution:
        scene, system, laws = self.scene, self.system, self.problem.laws
        v, p = self.problem.in_metric(last.metric).laws.evaluate(last.x)
        back = [order.index(k) for k in range(len(order))]
        projected = project_in_own_metric(self.problem, last.metric, last.impulse, last.now.z)[:, back] * shape
        friction, limited = laws.split(v, p)
        impulse = np.zeros(scene.m)
        impulse[: scene.contact_end] = projected.reshape(-1)
        rows = list(scene.limit_rows)
        if rows:
            motions = [row + len(system.rows.J) - scene.m for row in rows]
            impulse[rows] = np.maximum(system.rows.J[motions] @ limited, 0.0)
        if scene.friction_rows:
            impulse[list(scene.friction_rows)] = friction[list(scene.friction_dofs)]
        servo = laws.servo_impulse(v) - (self.servos.impulse - self.servos.diagonal * v)
        done = last.now.error <= WANTED[-1] * self.limits.tolerance * system.scale
        return TreeSolution(impulse, last.now.error, last.count, done, v, servo)


def tree_solver(
    scene: Scene,
    state: StepState,
    kinematics: Kinematics,
    contacts: Contacts,
    system: StepSystem,
    parameters: RowParameters,
    time_step: Any,
    limits: SolverLimits,
) -> TreeSolver:
    """The problem of a step, which is solved for one or several g."""
    tree, reach, nv = kinematics.tree, kinematics.reach, scene.nv
    servos = _servos_of(scene, system, state.v, time_step)
    added = system.forces.added - servos.diagonal
    M = system.inertia + np.diag(added)
    rhs = system.inertia @ system.free_velocity + system.forces.added * system.free_velocity - servos.impulse
    rho = np.stack([M[k, k] + (servos.laws[k].B if k in servos.laws else 0.0) for k in range(nv)])
    laws = JointLaws(_laws(scene, state, servos, time_step), rho)
    factors = shape_of(scene.layout, *parameters.coefficients)
    factors = factors[: scene.contact_end]
    center = reach.center if reach is not None else kinematics.poses[0][1]
    V = _motions(tree, kinematics, center)
    inertias = world_inertias(tree, kinematics.poses, center)
    J, rows, shares, between = _contact_rows(scene, kinematics, contacts, system, factors)
    friction, R = np.ones(scene.slots), np.zeros((0, scene.contact_rows))
    if scene.slots:
        if scene.contact_rows == 3:
            friction = np.clip(parameters.friction, 0.0, LARGEST_FRICTION)
        R = _responses(scene, contacts, factors)
    diagonal = added + numpy.array(model_armature(scene.model))
    groups = _contact_groups(len(J), scene.has_fixed_slots)
    problem = TreeProblem(tree, V, inertias, diagonal, M, rhs, laws, J, rows, shares, between, [], friction, R, groups)
    return TreeSolver(scene, system, problem, servos, factors, limits)


def _contact_groups(count: int, is_fixed: bool) -> tuple[range, ...]:
    """Groups of contacts, see `TreeProblem`. Fixed slots are one group. Other slots have the nearest candidates first,
    and each of their groups is as large as all before it."""
    if not count:
        return ()
    ends = [count if is_fixed else _FIRST]
    while ends[-1] < count:
        ends.append(2 * ends[-1])
    ends[-1] = count
    return tuple(range(start, end) for start, end in zip([0, *ends], ends, strict=False))


def _responses(scene: Scene, contacts: Contacts, factors: Any) -> Any:
    """R (slots, rows) of contacts, the normal last, from linear and angular responses of bodies, in units in which the
    cone is circular."""
    count, order = scene.contact_rows, [k for k in _ORDER if k < scene.contact_rows]
    moves, turns = (np.take(_SOFTER * np.array(x), contacts.candidate) for x in candidate_responses(scene))
    if count == 3:
        return moves[:, None] + np.zeros((scene.slots, 3))
    shape = factors.reshape(scene.slots, count)
    own = np.stack([moves, moves, moves, *[turns] * (count - 3)], 1)
    return np.maximum(own * shape * shape, _LEAST * moves[:, None])[:, order]


def _motions(tree: Links, kinematics: Kinematics, center: Any) -> list[Any]:
    """The twist (6,) of each velocity about a center."""
    if kinematics.reach is not None:
        return list(kinematics.reach.columns)
    columns = []
    for link, (R, p) in zip(tree.links, kinematics.poses, strict=True):
        S_lin, S_ang = link.subspace
        for k in range(link.motion.nv):
            ang = R @ S_ang[:, k]
            columns.append(np.concatenate([R @ S_lin[:, k] + np.cross(p - center, ang), ang]))
    return columns


def _contact_rows(
    scene: Scene, kinematics: Kinematics, contacts: Contacts, system: StepSystem, factors: Any
) -> tuple[list[Any], list[Any], list[dict[int, Any]], list[Any]]:
    """For each contact: J, its rows as functions of body twists, the links that it may act on, and whether it is
    between two bodies (see `TreeProblem`)."""
    reach, count = kinematics.reach, scene.contact_rows
    if not scene.slots or reach is None:
        return [], [], [], []
    order = [k for k in _ORDER if k < count]
    ends, fixed, world = candidate_links(scene, kinematics.tree), scene.has_fixed_slots, len(kinematics.tree.links)
    links = sorted({link for some in ends for link in some} - {world})
    sharing, end = system.rows.sharing, scene.contact_end
    every = system.rows.J[:end] if sharing is None else sharing.P[:end] @ system.rows.J
    J, rows, shares, between = [], [], [], []  # type: list[Any], list[Any], list[dict[int, Any]], list[Any]
    for k in range(scene.slots):
        shape = factors[count * k : count * (k + 1)][:, None]
        arm, axes = contacts.point[k] - reach.center, contacts.axes[k]
        directions = [np.concatenate([axes[:, i], np.cross(arm, axes[:, i])]) for i in range(3)]
        turns = [np.concatenate([np.zeros(3), axes[:, i]]) for i in (2, 0, 1)[: count - 3]]
        J.append((every[count * k : count * (k + 1)] * shape)[order])
        rows.append((np.stack([*directions, *turns]) * shape)[order])
        touching = [contacts.body[k], contacts.other[k]] if scene.has_pairs else [contacts.body[k]]
        if fixed:
            moving = [link for link in touching if link != world]
            between.append(len(moving) == 2)
            shares.append({moving[0]: 1.0} if len(moving) == 1 else {})
            continue
        joined = (touching[0] < float(world)) & (touching[1] < float(world)) if scene.has_pairs else False
        between.append(joined)
        shares.append({link: _share(touching, link, joined) for link in links})
    return J, rows, shares, between


def _share(touching: list[Any], link: int, joined: Any) -> Any:
    """1 if a contact with the world is on a link, else 0."""
    here = touching[0] == float(link)
    if len(touching) > 1:
        here = (here | (touching[1] == float(link))) & ~joined
    return np.where(here, 1.0, 0.0)


def _servos_of(scene: Scene, system: StepSystem, v: Any, time_step: Any) -> _Servos:
    """The laws of servos with limits, and their terms in the step's system (see `drive`)."""
    servos, h, nv = system.forces.servos, time_step, scene.nv
    diagonal, impulse = np.zeros(nv), np.zeros(nv)
    laws: dict[int, ServoLaw] = {}
    if servos is None:
        return _Servos(laws, diagonal, impulse)
    for k, arms in enumerate(servos.moment_arms):
        j = int(numpy.flatnonzero(arms)[0])
        c, mode = float(arms[j]), system.forces.modes[k]
        B = np.maximum(-h * c * c * servos.slope[k], 0.0)
        ends = sorted((-c * servos.lower[k], -c * servos.upper[k]))
        laws[j] = ServoLaw(h * c * servos.pull[k] + B * v[j], B, h * ends[0], h * ends[1])
        pull = np.where(mode > 0.0, servos.upper[k], np.where(mode < 0.0, servos.lower[k], servos.pull[k]))
        diagonal[j] = np.where(mode != 0.0, 0.0, B)
        impulse[j] = h * c * pull + diagonal[j] * v[j]
    return _Servos(laws, diagonal, impulse)


def _laws(scene: Scene, state: StepState, servos: _Servos, time_step: Any) -> tuple[JointLaw, ...]:
    """The law of each velocity, with joint limits if the scene has slots for them."""
    friction = {j: bound * time_step for j, bound in zip(scene.friction_dofs, scene.friction_bounds, strict=True)}
    limits: dict[int, tuple[Any, Any]] = {}
    if scene.limit_slots:
        model = scene.model
        for limit in scene.joint_limits:
            joint, start = model.joint(limit.joint), model.joint_index(limit.joint)
            _, i, j = joint.kind.parts[limit.element]
            q = state.q[model.q_starts[start] + i]
            lower = joint.lower[i] if joint.lower else -numpy.inf
            upper = joint.upper[i] if joint.upper else numpy.inf
            lo = -np.maximum(q - lower, 0.0) / time_step if numpy.isfinite(lower) else -numpy.inf
            hi = np.maximum(upper - q, 0.0) / time_step if numpy.isfinite(upper) else numpy.inf
            limits[model.v_starts[start] + j] = (lo, hi)
    return tuple(JointLaw(friction.get(j), limits.get(j), servos.laws.get(j)) for j in range(scene.nv))
