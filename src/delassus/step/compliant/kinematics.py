"""Stage 1 of a compliant step: links and rows of a state, and the accuracy of the rows."""

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
"""Rounding error of a position in the robot, in units in the last place."""

_PART: Final = 0.05
"""Fraction of the position error of a row that a correction may leave."""


class RowKinematics(NamedTuple):
    """The rows of a state: Jacobian, velocities and gaps.

    Attributes:
        scene: The robot, its contacts and its other rows.
        mechanism: The robot with all rows.
        place: The links at the start of the step, where errors, gaps and references are evaluated.
        motions: The links where inertias, J and velocity products are evaluated: at the start or in the middle.
        rows: J at `motions`.
        rate: (m,) J v for the velocity v at the start of the step.
        gap: (points,) gaps of contacts [m].
        stop_gap: (stops,) gaps of joint limits and one-sided constraints [rad, m].
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
        """The rows of a configuration q (nq,) and a velocity v (nv,)."""
        motions = LinkMotions.of(mechanism.model, q, v, time)
        rows = rows_in(mechanism, motions)
        rate = row_values(rows, motions.velocity, v)
        stops = [stop.gap(motions) for stop in scene.stops]
        return cls(scene, mechanism, motions, motions, rows, rate, gaps(scene, mechanism, motions), stops)

    def at_state(self, q: Any, v: Any, before: Any) -> RowKinematics:
        """The kinematics with inertias, J and velocity products of the state (q, v) in the middle of the step.

        `before` (nv,) is the velocity at the start of the step, in the body axes at q.
        """
        motions = LinkMotions.of(self.mechanism.model, q, v, self.place.time)
        there = self._replace(motions=motions, rows=rows_in(self.mechanism, motions))
        return there._replace(rate=there.velocities(before))

    def constraint_rows(self) -> list[tuple[Constraint, slice]]:
        """The constraints of the mechanism, and their rows."""
        start, own = self.scene.bilateral.start, self.scene.mechanism
        result = zip(own.constraints, own.row_ranges(), strict=True)
        return [(constraint, slice(start + at.start, start + at.stop)) for constraint, at in result]

    def error(self, constraint: Constraint, at: slice) -> Any:
        """The position error g of a constraint; zero if it has no reference position."""
        if not constraint.has_reference:
            return np.zeros(at.stop - at.start)
        return constraint.position_error(self.place)

    def reference(self, constraint: Constraint, at: slice) -> Any:
        """The reference velocity w of a constraint; zero if it has none."""
        moving = constraint.reference_velocity(self.place)
        return np.zeros(at.stop - at.start) if moving is None else moving

    def velocities(self, v: Any) -> Any:
        """J v (m,) for velocities v (nv,)."""
        return row_velocities(self.rows, self.motions, v)

    def accuracy(self, elastic_rows: tuple[int, ...], h: Any, v: Any, b: Any = None) -> RowAccuracy:
        """The accuracy of rows at velocities v (nv,), in the dynamics phase; with b (m,), in the correction phase.

        The error of J is of the order of the position error. A straight step along a curved row leaves an error of the
        square of its angle: the dynamics phase counts it as an error of J, and the correction may leave a small
        fraction of it.
        """
        own, reach, unit = self.scene.mechanism, self.reach(v), 2.0 ** -computing_in().digits
        deviation, slack = np.array(0.0), np.zeros(self.rows.m)
        sizes = numpy.array(row_sizes(own)) if own.m else numpy.zeros(0)
        for (constraint, at), place in zip(self.constraint_rows(), own.row_ranges(), strict=True):
            if not constraint.has_reference or not constraint.holds_positions:
                continue
            size, rigid = sizes[place], rigid_rows(at, elastic_rows)
            curved = 0.25 * np.max((h * reach[at] / size) ** 2)  # over all rows, for any choice of axes
            slack[at] = (_ROUNDING * unit + (0.0 if b is None else _PART * curved)) * size / h
            if rigid:
                share = np.max(np.abs(constraint.position_error(self.motions) / size)[rigid])
                deviation = np.maximum(deviation, share if b is not None else np.maximum(share, curved))
        groups = row_groups(self.scene.row_mechanism)
        return RowAccuracy(reach if b is None else np.abs(b), deviation, slack, groups)

    def reach(self, v: Any) -> Any:
        """|J| |v| (m,), summed link by link: the magnitude of the terms that cancel in each row."""
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
    """The indices, within a constraint, of its rigid rows."""
    return [row - at.start for row in range(at.start, at.stop) if row not in elastic_rows]
