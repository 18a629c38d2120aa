"""Results of contact dynamics: velocities and impulses, or accelerations and forces, with their residuals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.outcomes import name_of_row, summary_of_worst
from delassus.constrained.solvers.status import Status
from delassus.contact.problems.problem import ContactProblem
from delassus.contact.problems.solution import ContactSolution
from delassus.step.contact.origins import Origin
from delassus.step.contact.shape_contacts import ShapeContacts, ShapeRows
from delassus.step.impacts.dissipation import describe_energy_limit
from delassus.step.outcome import RowOutcome

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InContact(RowOutcome):
    """Fields that all results share, of one state or a batch; see also `RowOutcome`.

    Attributes:
        law: The law of contact, by name.
        origin: Inputs of the call, from which `problem` is built on request.
    """

    law: str
    origin: Origin

    @cached_property
    def problem(self) -> ContactProblem:
        """The contact problem that was solved, rebuilt from the inputs."""
        return self.origin.problem()

    def describe(self) -> str:
        """The status as a sentence or two; for a batch, that of the worst state."""
        status = np.asarray(self.status)
        worst, text = summary_of_worst(Status, status, "state")
        if worst in (None, Status.NOT_FINITE) or not self.scene.m:
            return text
        size = np.where((status == worst)[..., None], np.abs(self.residuals), -1.0)
        at = np.unravel_index(int(np.argmax(size)), size.shape)
        name = self._name_of_row(at)
        where = f" in state {', '.join(map(str, map(int, at[:-1])))}" if status.size > 1 else ""
        outcome = int(np.asarray(self.iterations)[at[:-1]])
        return f"{text} The largest residual is {size.max():.3g}, of {name!r}{where}, after {outcome} iterations."

    def _name_of_row(self, at: Any) -> str:
        """The name of a row; `at` are the indices of a state, and the number of the row."""
        row: int = int(at[-1])
        return str(name_of_row(self.scene.row_mechanism.slices, row))


@dataclass(frozen=True, eq=False)
class ContactStep(InContact):
    """A robot after a time step with contact, of one state or a batch, with residual and status.

    Attributes:
        q: (…, nq) after the step [rad, m].
        velocity: (…, nv) after the step [rad/s, m/s]; for free and planar joints, in the axes after the step.
        impulse: (…, m) λ of all rows [N·s, N·m·s]: of a contact t1, t2, n, on its first body.
        row_velocity: (…, m) σ = (G + R) λ + g [m/s, rad/s] of the contact problem.
        restitution_share: (…) fraction of the restitution that was applied: less than 1 where all of it would
            have added energy. `problem` uses this fraction.
        contacts: Which shapes have the contact slots, and where they touch; None for contacts by name.
        pyramid: For the law "lcp", the number of faces, and "inner" or "outer".

    >>> joint = dl.Joint("base", dl.model.Translation(), inertia=dl.Inertia.of(1.0))
    >>> ball = dl.Model("ball", (joint,), frame_list=(dl.model.Frame("center", 0),))
    >>> zero = np.zeros(3)
    >>> step = dl.contact_dynamics(ball, zero, zero, zero, contacts=[dl.Contact("center")], time_step=1e-2)
    >>> step.velocity, step.modes
    (array([0., 0., 0.]), array(['sticking'], dtype='<U8'))
    """

    q: Array
    velocity: Array
    impulse: Array
    row_velocity: Array
    restitution_share: Array
    pyramid: tuple[int, str] | None = None
    contacts: ShapeContacts | None = None

    @property
    def energy_limited(self) -> Any:
        """(…) whether restitution was reduced because, with friction, it would have added energy."""
        return np.asarray(self.restitution_share) < 1.0

    def describe(self) -> str:
        """How it ended, in some sentences: of the worst state, where there are several."""
        text = super().describe() + describe_energy_limit(self.energy_limited)
        if self.contacts is None or not np.any(self.contacts.overflow):
            return text
        return f"{text} More contacts touch than the {self.scene.slots} slots: pass a larger max_contacts."

    def by_name(self, values: Array) -> Mapping[str, Array]:
        """Views of values (…, m) by the names of contacts, shapes, constraints and joints."""
        if self.contacts is None:
            return super().by_name(values)
        return ShapeRows(self.scene, self.contacts, np.asarray(values))

    def _name_of_row(self, at: Any) -> str:
        scene, row = self.scene, int(at[-1])
        if self.contacts is None:
            return super()._name_of_row(at)
        if row >= scene.contact_end:
            return str(name_of_row(scene.row_mechanism.slices, row - scene.contact_end))
        return str(self.contacts.name[(*at[:-1], row // scene.contact_rows)])

    @property
    def impulses(self) -> Mapping[str, Array]:
        """Views of `impulse` by the names of contacts, constraints and joints."""
        return self.by_name(self.impulse)

    @property
    def solution(self) -> ContactSolution:
        """The impulses as the solution of the contact problem, which measures violations and dissipation.

        The problem of the relaxed model is one of forces and accelerations, and so is its solution.
        """
        numbers = (self.impulse, self.row_velocity, self.residuals)
        if self.law == "relaxed":
            h = np.asarray(self.origin.state[3])[..., None]
            numbers = (self.impulse / h, self.row_velocity / h, self.residuals / h)
        return ContactSolution(self.problem, self.law, *numbers, self.iterations, self.status, self.pyramid)

    @property
    def modes(self) -> Any:
        """(…, points) of each point "open", "sticking" or "sliding"."""
        return self.solution.modes


@dataclass(frozen=True, eq=False)
class ContactForces(InContact):
    """Accelerations of a robot in contact, one state or a batch, and the forces behind them.

    Attributes:
        acceleration: (…, nv) [rad/s², m/s²].
        force: (…, m) of all rows [N, N·m]: of a contact t1, t2, n, on its first body.
        row_acceleration: (…, m) of the rows [m/s², rad/s²].

    >>> joint = dl.Joint("base", dl.model.Translation(), inertia=dl.Inertia.of(1.0))
    >>> ball = dl.Model("ball", (joint,), frame_list=(dl.model.Frame("center", 0),))
    >>> zero = np.zeros(3)
    >>> at = dl.contact_dynamics(ball, zero, zero, zero, contacts=[dl.Contact("center")], law="relaxed", time_step=None)
    >>> at.force.shape
    (3,)
    """

    acceleration: Array
    force: Array
    row_acceleration: Array

    @property
    def forces(self) -> Mapping[str, Array]:
        """Views of `force` by the names of contacts, constraints and joints."""
        return self.by_name(self.force)
