"""Rows of a step under MuJoCo's contact law: stiffness and reference velocity.

A row with the violation r, the velocity J v and the impedance d(r) has the reference acceleration a* = -b J v - k d r
and the compliance R = (1 - d)/d · Â (see `laws.relaxed`). In a step h they become a stiffness and a velocity:

    D = 1/R,      c = J v + h (a* - J̇ v)

J̇ v is included for constraints on bodies only, as in MuJoCo. Contacts and limits act if their gap is below their
margin at the start of the step; otherwise D = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.constrained.rows.jacobian import link_values
from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import rows_in
from delassus.model.parts import Impedance
from delassus.step.laws.impedance import LEAST, gains, impedances
from delassus.step.laws.weights import scene_weights
from delassus.step.scene import Scene
from delassus.step.scheme.manifold_step import turning
from delassus.step.sources.impedances import ContactImpedance


class RowState(NamedTuple):
    """Quantities of a state on which soft rows depend.

    Attributes:
        q: (nq,) configuration.
        v: (nv,) velocity.
        time: () time at the end of the step [s].
        candidate: (slots,) the candidate of each slot.
        gap: (slots,) gaps of contacts [m].
        stop_gap: (stops,) gaps of one-sided constraints and joint limits [rad, m].
        reference_velocity: (bilateral,) reference velocities of constraints.
        row_velocity: (m,) J v.
    """

    q: Any
    v: Any
    time: Any
    candidate: Any
    gap: Any
    stop_gap: Any
    reference_velocity: Any
    row_velocity: Any


class SoftRows(NamedTuple):
    """Stiffnesses D (slots,) [kg] of contact normals, D (rows,) of all rows after them, and reference velocities c
    (m,)."""

    contacts: Any
    others: Any
    target: Any


class _Column(NamedTuple):
    """Rows with the same formulas: violations, sizes r of d(r), whether they act, solref, solimp and weights."""

    violation: Any
    size: Any
    acts: Any
    solref: Any
    solimp: Any
    weight: Any


def soft_rows(scene: Scene, state: RowState, time_step: Any) -> SoftRows:
    """Stiffnesses and reference velocities of the rows of a state."""
    h, slots, end, before = time_step, scene.slots, scene.contact_end, state.row_velocity
    target = np.array(before)
    weights = scene_weights(scene)
    stiffness = np.zeros(slots)
    if slots:
        column, friction = _contact_column(scene, state, weights.contacts)
        stiffness, pull, damping = _respond(column, h)
        across = damping
        if friction is not None:
            across = np.where(friction[0] != 0.0, gains(friction, column.solimp[:, 1], h)[1], damping)
        shaped = before[:end].reshape(slots, scene.contact_rows)
        wanted = shaped - h * across[:, None] * shaped
        wanted[:, 2] = shaped[:, 2] - h * (damping * shaped[:, 2] + pull)
        target[:end] = wanted.reshape(-1)
    others = np.zeros(scene.m - end)
    if scene.m > end:
        column, product = _other_column(scene, state, weights.others)
        others, pull, damping = _respond(column, h)
        speed = np.array(before[end:])
        if scene.mechanism.m:
            bilateral = slice(0, scene.mechanism.m)
            speed[bilateral] = speed[bilateral] - state.reference_velocity
        target[end:] = before[end:] - h * (damping * speed + pull + product)
    return SoftRows(stiffness, others, target)


def _respond(column: _Column, h: Any) -> tuple[Any, Any, Any]:
    """D, k d r and b (n,) of rows."""
    d = impedances(column.solimp, column.size)
    R = np.maximum((1.0 - d) / d * column.weight, LEAST)
    k, b = gains(column.solref, column.solimp[:, 1], h)
    return np.where(column.acts, 1.0 / R, 0.0), k * d * column.violation, b


def _table(own: tuple[Impedance, ...]) -> tuple[Any, Any]:
    """solref (2, n) and solimp (n, 5) of n impedances."""
    return (
        numpy.array([x.solref for x in own]).reshape(len(own), 2).T,
        numpy.array([x.solimp for x in own]).reshape(len(own), 5),
    )


def _contact_column(scene: Scene, state: RowState, weights: Any) -> tuple[_Column, Any]:
    """The normals of contacts, and the solref (2, slots) of their friction if some have one of their own."""
    own: tuple[ContactImpedance, ...] = scene.impedances.contacts if scene.impedances else ()
    solref, solimp = _table(own)
    friction = numpy.array([x.solreffriction or (0.0, 0.0) for x in own]).T
    margin = numpy.array([x.margin for x in own])
    number = state.candidate
    if scene.has_fixed_slots:
        number = numpy.array(scene.slot_candidates[: scene.slots], int)

    def pick(values: Any) -> Any:
        """Values (slots, …) of the slots' candidates; constants if they are known at compile time."""
        if isinstance(number, numpy.ndarray):
            return values[number.astype(int)]
        if isinstance(values, numpy.ndarray) and numpy.all(values == values[0]):
            return numpy.broadcast_to(values[0], (scene.slots, *values.shape[1:]))
        return np.take(values, number, axis=0)

    violation = state.gap - pick(margin)
    table = [pick(column) for column in solimp.T]
    impedance = numpy.stack(table, 1) if all(isinstance(x, numpy.ndarray) for x in table) else np.stack(table, 1)
    column = _Column(violation, violation, violation < 0.0, [pick(x) for x in solref], impedance, pick(weights))
    return column, [pick(x) for x in friction] if friction.any() else None


def _other_column(scene: Scene, state: RowState, weights: Any) -> tuple[_Column, Any]:
    """Constraints, one-sided constraints, limits and friction of joints, and J̇ v (n,) of the first two."""
    soft = scene.impedances
    if soft is None:
        raise TypeError("the rows of this scene are rigid.")
    motions = LinkMotions.of(scene.model, state.q, state.v, state.time)
    own: list[Impedance] = []
    violation: list[Any] = []
    size: list[Any] = []
    for constraint, impedance in zip(scene.bilateral_constraints, soft.constraints, strict=True):
        count = constraint.count(scene.model)
        own += [impedance] * count
        error = constraint.position_error(motions) if constraint.has_reference else np.zeros(count)
        violation += list(error)
        size += [np.sqrt(np.sum(error * error))] * count
    own += (*soft.one_sided, *soft.joint_limits)
    stops = list(state.stop_gap) if scene.stop_rows else []
    acts = [np.array(True)] * len(violation) + [gap < 0.0 for gap in stops]
    rest = len(scene.friction_bounds)
    own += soft.joint_friction
    zero = [np.array(0.0)] * rest
    acts += [np.array(True)] * rest
    solref, solimp = _table(tuple(own))
    column = _Column(
        np.stack([np.array(x) for x in (*violation, *stops, *zero)]),
        np.stack([np.array(x) for x in (*size, *stops, *zero)]),
        np.stack(acts),
        solref,
        solimp,
        weights,
    )
    return column, _velocity_products(scene, motions, len(own))


def _velocity_products(scene: Scene, motions: LinkMotions, count: int) -> Any:
    """J̇ v (count,) of constraints on bodies, which come first; zero for those on joints."""
    products = np.zeros(count)
    constraints: tuple[Constraint, ...] = (*scene.bilateral_constraints, *scene.one_sided)
    if not any(constraint.links(scene.model) for constraint in constraints):
        return products
    mechanism = Mechanism(scene.model, constraints, model_constraints=False)
    values = link_values(rows_in(mechanism, motions), motions, turning(scene.model, motions.v))
    for constraint, at in zip(constraints, mechanism.row_ranges(), strict=True):
        if constraint.links(scene.model):
            products[at] = values[at] + constraint.velocity_product(motions)
    return products
