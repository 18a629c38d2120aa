"""Stage 1 of a compliant step: links and rows in a state, and the rounding errors of the rows."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.delassus.scales import row_groups, row_sizes
from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import Rows, row_values, rows_in
from delassus.step.compliant.types import RowAccuracy
from delassus.step.points.geometry import gaps
from delassus.step.scene import Scene
from delassus.step.scheme.response import row_velocities

_ROUNDING: Final = 1024.0
"""Units of the last digit by which a place in the robot may be off."""

_PART: Final = 0.05
"""Fraction of the error of a row after a step that a correction may leave."""


class RowKinematics(NamedTuple):
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
    def of(cls, scene: Scene, mechanism: Mechanism, q: Any, v: Any, time: Any = None) -> RowKinematics:
        """That of a configuration and a velocity."""
        motions = LinkMotions.of(mechanism.model, q, v, time)
        rows = rows_in(mechanism, motions)
        rate = row_values(rows, motions.velocity, v)
        stops = [stop.gap(motions) for stop in scene.stops]
        return cls(scene, mechanism, motions, motions, rows, rate, gaps(scene, mechanism, motions), stops)

    def at_state(self, q: Any, v: Any, before: Any) -> RowKinematics:
        """The kinematics with inertias, J and velocity products of the state in the middle of the step; `before`
        (nv,) is the velocity as the step begins, in the axes there."""
        motions = LinkMotions.of(self.mechanism.model, q, v, self.place.time)
        there = self._replace(motions=motions, rows=rows_in(self.mechanism, motions))
        return there._replace(rate=there.velocities(before))

    def constraint_rows(self) -> list[tuple[Constraint, slice]]:
        """The constraints of the mechanism, and their rows."""
        start, own = self.scene.bilateral.start, self.scene.mechanism
        result = zip(own.constraints, own.row_ranges(), strict=True)
        return [(constraint, slice(start + at.start, start + at.stop)) for constraint, at in result]

    def error(self, constraint: Constraint, at: slice) -> Any:
        """g of the rows of a constraint: zero for those that are not held to a place."""
        if not constraint.has_reference:
            return np.zeros(at.stop - at.start)
        return constraint.position_error(self.place)

    def reference(self, constraint: Constraint, at: slice) -> Any:
        """w of the rows of a constraint."""
        moving = constraint.reference_velocity(self.place)
        return np.zeros(at.stop - at.start) if moving is None else moving

    def velocities(self, v: Any) -> Any:
        """J v (m,) of other velocities."""
        return row_velocities(self.rows, self.motions, v)

    def accuracy(self, elastic_rows: tuple[int, ...], h: Any, v: Any, b: Any = None) -> RowAccuracy:
        """How well rows are known at velocities v (nv,); with b (m,), in the correction phase, which asks for that.

        J is off by the error there. A straight step leads off a curved row by the square of what it turns by: so far is
        J off in the dynamics, and a small part of it is what the correction may leave.
        """
        own, reach, unit = self.scene.mechanism, self.reach(v), 2.0 ** -computing_in().digits
        deviation, slack = np.array(0.0), np.zeros(self.rows.m)
        sizes = numpy.array(row_sizes(own)) if own.m else numpy.zeros(0)
        for (constraint, at), place in zip(self.constraint_rows(), own.row_ranges(), strict=True):
            if not constraint.has_reference or not constraint.holds_positions:
                continue
            size, rigid = sizes[place], rigid_rows(at, elastic_rows)
            curved = 0.25 * np.max((h * reach[at] / size) ** 2)  # of all its rows: axes do not matter
            slack[at] = (_ROUNDING * unit + (0.0 if b is None else _PART * curved)) * size / h
            if rigid:
                share = np.max(np.abs(constraint.position_error(self.motions) / size)[rigid])
                deviation = np.maximum(deviation, share if b is not None else np.maximum(share, curved))
        groups = row_groups(self.scene.row_mechanism)
        return RowAccuracy(reach if b is None else np.abs(b), deviation, slack, groups)

    def reach(self, v: Any) -> Any:
        """The velocities (m,) that cancel in each row at velocities v (nv,): |J| |v|, link by link."""
        result, velocity = np.zeros(self.rows.m), LinkMotions.of(self.motions.model, self.motions.q, v).velocity
        for link, own in self.rows.links.items():
            lin, ang = velocity[link]
            here = np.abs(own.K[:, :3]) @ np.abs(lin) + np.abs(own.K[:, 3:]) @ np.abs(ang)
            for j, row in enumerate(own.rows):
                result[row] = result[row] + here[j]
        for dof in self.rows.dofs:
            result[dof.row] = result[dof.row] + np.abs(dof.factor * v[dof.v])
        return result


def rigid_rows(at: slice, elastic_rows: tuple[int, ...]) -> list[int]:
    """The numbers, within a constraint, of its rows that are not elastic."""
    return [row - at.start for row in range(at.start, at.stop) if row not in elastic_rows]
