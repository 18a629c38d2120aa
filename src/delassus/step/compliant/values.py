"""The rows of a robot in a step of the compliant scheme: R and b of all of them, in both phases (see `scheme`)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.delassus.scales import row_groups, row_sizes
from delassus.constrained.rows.jacobian import link_values
from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import Rows, compliance_of, right_hand_side, row_values, rows_in
from delassus.step.compliant.scheme import elastic, elastic_matrix, kinematic, unilateral
from delassus.step.compliant.solve import Known
from delassus.step.impacts.strikes import Strikes, rebound_at_start, strikes, thrown_back
from delassus.step.points.geometry import gaps
from delassus.step.scene import Scene
from delassus.step.scheme.blend import Blend

_ROUNDING: Final = 1024.0
"""Units of the last digit by which a place in the robot may be off."""

_PART: Final = 0.05
"""Of what a step leads off a row, what a correction may leave."""


class Numbers(NamedTuple):
    """Numbers of the rows in a state, None where they are not needed.

    Attributes:
        compliance: (m,) C of elastic rows [m/N], and of contacts' normals, which are elastic where it is not zero.
        damping: (m,) B of elastic rows [N·s/m].
        restitution: (points,) e.
        matrix: (m, m) with C of constraints whose rows yield to each other's forces.
        coupled: The first row, and the one after the last, of each of them.
    """

    compliance: Any = None
    damping: Any = None
    restitution: Any = None
    matrix: Any = None
    coupled: tuple[tuple[int, int], ...] = ()


class Recovery(NamedTuple):
    """The shares of errors of position that velocities take off in a step; 0.0 and 1.0 are compiled in."""

    bilateral: Any = 1.0
    unilateral: Any = 0.0


class Values(NamedTuple):
    """R (m,), b (m,), the same b without restitution (m,), which contacts strike, and what R has besides its diagonal
    (m, m), None where rows yield to their own forces alone."""

    compliance: Any
    value: Any
    plastic: Any
    strikes: Strikes | None
    coupling: Any = None

    def coupled_with(self, G: Any) -> Any:
        """G (m, m) with what R has besides its diagonal."""
        return G if self.coupling is None else G + self.coupling


class State(NamedTuple):
    """Rows in a state: where they are, how they move, and the gaps of those that push.

    Attributes:
        scene: The robot, its contacts and its other rows.
        mechanism: The robot with all rows.
        place: Its links as the step begins: errors, gaps and references are those.
        motions: Its links where inertias, J and velocity products are taken: as the step begins, or in its middle.
        rows: J, there.
        rate: (m,) J v, v the velocity as the step begins.
        gap: (points,) of contacts.
        stop_gap: (stops,) of limits.
    """

    scene: Scene
    mechanism: Mechanism
    place: LinkMotions
    motions: LinkMotions
    rows: Rows
    rate: Any
    gap: Any
    stop_gap: list[Any]

    @classmethod
    def of(cls, scene: Scene, mechanism: Mechanism, q: Any, v: Any, time: Any = None) -> State:
        """That of a configuration and a velocity."""
        motions = LinkMotions.of(mechanism.model, q, v, time)
        rows = rows_in(mechanism, motions)
        rate = row_values(rows, motions.velocity, v)
        stops = [stop.gap(motions) for stop in scene.stops]
        return cls(scene, mechanism, motions, motions, rows, rate, gaps(scene, mechanism, motions), stops)

    def seen_from(self, q: Any, v: Any, before: Any) -> State:
        """The same with inertias, J and velocity products of another state, that of the middle of the step; `before`
        (nv,) is the velocity as the step begins, in the axes there."""
        motions = LinkMotions.of(self.mechanism.model, q, v, self.place.time)
        there = self._replace(motions=motions, rows=rows_in(self.mechanism, motions))
        return there._replace(rate=there.moving(before))

    def ties(self) -> list[tuple[Constraint, slice]]:
        """The constraints of the mechanism, and their rows."""
        start, own = self.scene.bilateral.start, self.scene.mechanism
        found = zip(own.constraints, own.row_ranges(), strict=True)
        return [(constraint, slice(start + at.start, start + at.stop)) for constraint, at in found]

    def error(self, constraint: Constraint, at: slice) -> Any:
        """g of the rows of a constraint: zero for those that are not held to a place."""
        if not constraint.has_reference:
            return np.zeros(at.stop - at.start)
        return constraint.position_error(self.place)

    def reference(self, constraint: Constraint, at: slice) -> Any:
        """w of the rows of a constraint."""
        moving = constraint.reference_velocity(self.place)
        return np.zeros(at.stop - at.start) if moving is None else moving

    def moving(self, v: Any) -> Any:
        """J v (m,) of other velocities."""
        return row_values(self.rows, LinkMotions.of(self.motions.model, self.motions.q, v).velocity, v)

    def known(self, elastic_rows: tuple[int, ...], h: Any, v: Any, b: Any = None) -> Known:
        """How well rows are known at velocities v (nv,); with b (m,), in the correction phase, which asks for that.

        J is off by the error there. A straight step leads off a curved row by the square of what it turns by: so far is
        J off in the dynamics, and a small part of it is what the correction may leave.
        """
        own, reach, unit = self.scene.mechanism, self.reach(v), 2.0 ** -computing_in().digits
        off, slack = np.array(0.0), np.zeros(self.rows.m)
        sizes = numpy.array(row_sizes(own)) if own.m else numpy.zeros(0)
        for (constraint, at), place in zip(self.ties(), own.row_ranges(), strict=True):
            if not constraint.has_reference or not constraint.holds_positions:
                continue
            size, rigid = sizes[place], _rigid_rows(at, elastic_rows)
            curved = 0.25 * np.max((h * reach[at] / size) ** 2)  # of all its rows: axes do not matter
            slack[at] = (_ROUNDING * unit + (0.0 if b is None else _PART * curved)) * size / h
            if rigid:
                share = np.max(np.abs(constraint.position_error(self.motions) / size)[rigid])
                off = np.maximum(off, share if b is not None else np.maximum(share, curved))
        return Known(reach if b is None else np.abs(b), off, slack, row_groups(self.scene.row_mechanism))

    def reach(self, v: Any) -> Any:
        """The velocities (m,) that cancel in each row at velocities v (nv,): |J| |v|, link by link."""
        found, velocity = np.zeros(self.rows.m), LinkMotions.of(self.motions.model, self.motions.q, v).velocity
        for link, own in self.rows.links.items():
            lin, ang = velocity[link]
            here = np.abs(own.K[:, :3]) @ np.abs(lin) + np.abs(own.K[:, 3:]) @ np.abs(ang)
            for j, row in enumerate(own.rows):
                found[row] = found[row] + here[j]
        for dof in self.rows.dofs:
            found[dof.row] = found[dof.row] + np.abs(dof.factor * v[dof.v])
        return found


def dynamics(
    state: State,
    blend: Blend,
    elastic_rows: tuple[int, ...],
    numbers: Numbers,
    recovery: Recovery,
    after: Any = None,
    *,
    at_start: bool = False,
) -> Values:
    """The dynamics phase; `after` (m,) are the rows' velocities after the free step, None where nothing strikes.

    Contacts strike where their gap closes, or `at_start` of the step, if positions move with v⁺ all along.
    """
    scene = state.scene
    R, b = np.array(compliance_of(state.mechanism)) + np.zeros(scene.m), np.zeros(scene.m)
    wanted = coupling = None
    for constraint, at in state.ties():
        g, w = state.error(constraint, at), state.reference(constraint, at)
        rate = state.rate[at] - w
        if pulls(constraint):
            wanted = _wanted(state) if wanted is None else wanted
            b[at] = -(state.rate[at] + blend.h * wanted[at])
        elif _is(recovery.bilateral, 0.0) or not constraint.holds_positions or not constraint.has_reference:
            b[at] = -w
        else:
            b[at] = kinematic(blend, g if _is(recovery.bilateral, 1.0) else recovery.bilateral * g, rate, w)
        soft = [row for row in range(at.start, at.stop) if row in elastic_rows]
        if (at.start, at.stop) in numbers.coupled:
            B = None if numbers.damping is None else numbers.damping[at]
            block, b[at] = elastic_matrix(blend, g, rate, w, numbers.matrix[at, at], B)
            coupling = np.zeros((scene.m, scene.m)) if coupling is None else coupling
            for i, row in enumerate(range(at.start, at.stop)):
                R[row] = block[i, i]
                for j, other in enumerate(range(at.start, at.stop)):
                    coupling[row, other] = 0.0 if i == j else block[i, j]
        elif soft:
            own, B = [row - at.start for row in soft], None if numbers.damping is None else numbers.damping[soft]
            R[soft], b[soft] = elastic(blend, g[own], rate[own], w[own], numbers.compliance[soft], B)
    for row, stop, gap in zip(scene.stop_rows, scene.stops, state.stop_gap, strict=True):
        w = stop.reference_velocity(state.place)
        b[row] = _held_out(blend, gap, state.rate[row], recovery)
        if w is not None:
            b[row] = _held_out(blend, gap, state.rate[row] - w[0], recovery) - w[0]
    normals = list(scene.normals)
    if not normals:
        return Values(R, b, b, None, coupling)
    closing = state.rate[normals]
    value = _held_out(blend, state.gap, closing, recovery)
    if numbers.compliance is not None:
        C = numbers.compliance[normals]
        B = None if numbers.damping is None else numbers.damping[normals]
        soft, pulled = elastic(blend, state.gap, closing, 0.0, C, B)
        R[normals], value = np.where(C > 0.0, soft, R[normals]), np.where(C > 0.0, pulled, value)
    b[normals] = value
    if numbers.restitution is None or after is None:
        return Values(R, b, b, None, coupling)
    e = numbers.restitution
    found = strikes(state.motions.model, blend, state.gap, closing, after[normals], e)
    if at_start:
        found = found._replace(share=0.0)
        leaves, _ = rebound_at_start(np.maximum(state.gap, 0.0) / blend.h, closing, after[normals], e)
        rebound = np.minimum(-leaves, 0.0)
    else:
        rebound = thrown_back(found, blend, closing, after[normals], e)
    full = np.array(b)
    full[normals] = np.where(found.on, rebound, value)
    return Values(R, full, b, found, coupling)


def pulls(constraint: Constraint) -> bool:
    """Whether a constraint says itself how it is to be met."""
    return any(numpy.any(getattr(constraint, name)) for name in ("acceleration", "position_gain", "velocity_gain"))


def _is(share: Any, number: float) -> bool:
    """Whether a share is this number at compile time."""
    return isinstance(share, float) and share == number


def _held_out(blend: Blend, gap: Any, rate: Any, recovery: Recovery) -> Any:
    """b of a contact or limit that does not strike, and gives a share of its penetration back."""
    b = unilateral(blend, gap, rate)
    return b if _is(recovery.unilateral, 0.0) else np.where(gap > 0.0, b, recovery.unilateral * gap / blend.h)


def correction(state: State, blend: Blend, elastic_rows: tuple[int, ...], numbers: Numbers) -> Any:
    """b (m,) of the correction phase; R is that of the dynamics phase."""
    scene = state.scene
    b = np.zeros(scene.m)
    for constraint, at in state.ties():
        rigid = _rigid_rows(at, elastic_rows)
        if rigid and constraint.holds_positions:
            b[[at.start + k for k in rigid]] = state.error(constraint, at)[rigid] / blend.h
    for row, gap in zip(scene.stop_rows, state.stop_gap, strict=True):
        b[row] = gap / blend.h
    for row, gap in zip(scene.normals, state.gap, strict=True):
        soft = np.array(False) if numbers.compliance is None else numbers.compliance[row] > 0.0
        b[row] = np.where(soft, np.maximum(gap, 0.0), gap) / blend.h
    return b


def _rigid_rows(at: slice, elastic_rows: tuple[int, ...]) -> list[int]:
    """The numbers, within a constraint, of its rows that are not elastic."""
    return [row - at.start for row in range(at.start, at.stop) if row not in elastic_rows]


def _wanted(state: State) -> Any:
    """The accelerations (m,) that constraints with gains of their own ask for."""
    k = right_hand_side(state.mechanism, state.rows, state.motions)
    return k - link_values(state.rows, state.motions, np.zeros(state.mechanism.nv))
