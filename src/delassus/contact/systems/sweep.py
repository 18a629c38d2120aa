"""One Gauss–Seidel sweep over the rows of a system, one contact at a time.

For a contact: the normal impulse that stops the approach, then the tangential one that stops sliding, limited by
friction (for the convex law, one step of all three rows, projected onto the cone). The system applies the change of an
impulse: `push` adds its effect to the velocities of all rows, or to those of the bodies; `row_velocities` returns the
velocities of selected rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import delassus.numpy as np
from delassus.contact.cones.kinds import Free
from delassus.contact.cones.layout import Layout
from delassus.contact.systems.metric import metric_of, project_onto_ball
from delassus.contact.systems.protocol import Update
from delassus.contact.systems.smooth import length, second_order, tiny


class CoupledRows(Protocol):
    """Rows with cones, their diagonal blocks, and the effect of their impulses on other rows."""

    @property
    def layout(self) -> Layout:
        """Which rows belong to which cone."""

    @property
    def convex(self) -> bool:
        """Whether the law is convex."""

    @property
    def friction(self) -> Any:
        """Coefficients of friction (contacts,)."""

    @property
    def lower(self) -> Any:
        """Lower bounds of impulses (intervals,)."""

    @property
    def upper(self) -> Any:
        """Upper bounds of impulses (intervals,)."""

    def diagonal_block(self, rows: Any) -> Any:
        """The diagonal block of G of `rows`: a scalar, or (k, k)."""

    def row_velocities(self, response: Any, impulse: Any, rows: Any) -> Any:
        """σ of `rows`."""

    def push(self, response: Any, rows: Any, change: Any) -> Any:
        """The response after a change of the impulses of `rows`."""


def sweep_rows(
    system: CoupledRows, impulse: Any, response: Any, relaxation: Any = 1.0, update: Update | None = None
) -> tuple[Any, Any]:
    """Impulses (m,) and the response after one sweep over all rows; `update` solves a contact."""
    impulse, response = sweep_scalars(system, impulse, response, relaxation)
    update = update or contact_update(system.convex)
    for k, at in enumerate(system.layout.blocks):
        velocity = system.row_velocities(response, impulse, at)
        new = update(system.diagonal_block(at), impulse[at], velocity, system.friction[k], relaxation)
        response = system.push(response, at, new - impulse[at])
        impulse[at] = new
    return impulse, response


def sweep_scalars(system: CoupledRows, impulse: Any, response: Any, relaxation: Any) -> tuple[Any, Any]:
    """Sweep over the rows before the contacts."""
    impulse, response = np.array(impulse), np.array(response)
    for k in range(system.layout.scalars):
        velocity = system.row_velocities(response, impulse, k)
        new = row_step(system, k, system.diagonal_block(k), impulse[k], velocity, relaxation)
        response = system.push(response, k, new - impulse[k])
        impulse[k] = new
    return impulse, response


def contact_update(convex: bool) -> Update:
    """The update of a contact under the law."""
    return cone_step if convex else coulomb_step


def row_step(system: Any, k: int, response: Any, impulse: Any, velocity: Any, relaxation: Any) -> Any:
    """The impulse that stops a row before the contacts, limited by its bounds."""
    layout = system.layout
    first_interval = layout.scalars - layout.intervals
    new = impulse - velocity * (relaxation / np.where(response > 0.0, response, 1.0))
    if k >= first_interval:
        return np.minimum(np.maximum(new, system.lower[k - first_interval]), system.upper[k - first_interval])
    return new if k < len(layout.rows(Free)) else np.maximum(new, 0.0)


class ContactSteps(NamedTuple):
    """Change of a contact's impulse per unit of velocity along the normal (…), and along the tangents: one value (…)
    for two of them, one each (…, k) for more.
    """

    normal: Any
    tangents: Any


def steps_of(G: Any, relaxation: Any = 1.0) -> ContactSteps:
    """From the diagonal blocks of G (…, k, k) of contacts."""
    n = G.shape[-1] - 1
    response = np.where(G[..., n, n] > 0.0, G[..., n, n], 1.0)
    if n == 2:
        return ContactSteps(relaxation / response, relaxation / _largest(G[..., :n, :n]))
    # A multiple of R that bounds G from above, so that a step does not overshoot.
    R = metric_of(np.stack([G[..., k, k] for k in range(n + 1)], -1))[..., :n]
    root = 1.0 / np.sqrt(R)
    bound = _largest(G[..., :n, :n] * root[..., :, None] * root[..., None, :])
    return ContactSteps(relaxation / response, (relaxation / bound)[..., None] / R)


def coulomb_step(G: Any, impulse: Any, velocity: Any, friction: Any, relaxation: Any) -> Any:
    """The impulses (…, k) of contacts, given their velocities without a change; one contact, or a batch."""
    return coulomb_move(G, steps_of(G, relaxation), impulse, velocity, friction)


def coulomb_move(G: Any, steps: ContactSteps, impulse: Any, velocity: Any, friction: Any) -> Any:
    """The change of a contact's impulse, with known step lengths."""
    n = impulse.shape[-1] - 1
    normal = np.maximum(impulse[..., n] - velocity[..., n] * steps.normal, 0.0)
    sliding = velocity[..., :n] + G[..., :n, n] * (normal - impulse[..., n])[..., None]
    if n > 2:
        target = impulse[..., :n] - sliding * steps.tangents
        nearest = project_onto_ball(target, 1.0 / steps.tangents, friction * normal).point
        return np.concatenate([nearest, normal[..., None]], -1)
    target = impulse[..., :n] - sliding * steps.tangents[..., None]
    t, radius = length(target), friction * normal
    share = np.where(t > radius, radius / (t + tiny()), 1.0)
    return np.concatenate([share[..., None] * target, normal[..., None]], -1)


def cone_step(G: Any, impulse: Any, velocity: Any, friction: Any, relaxation: Any) -> Any:
    """One gradient step, projected onto the cone."""
    target = impulse - velocity * (relaxation / _largest(G))[..., None]
    onto = second_order(length(target[..., :-1]), target[..., -1], friction, 0.0)
    return np.concatenate([onto.share[..., None] * target[..., :-1], onto.h[..., None]], -1)


def _largest(G: Any) -> Any:
    """An upper bound (…) of the largest eigenvalue of small matrices, or 1 for empty ones: the largest row sum."""
    bound = np.max(np.sum(np.abs(G), -1), -1) if G.shape[-1] > 2 else _largest_of_two(G)
    return np.where(bound > 0.0, bound, 1.0)


def _largest_of_two(G: Any) -> Any:
    half = 0.5 * (G[..., 0, 0] - G[..., 1, 1])
    return 0.5 * (G[..., 0, 0] + G[..., 1, 1]) + np.sqrt(half * half + G[..., 0, 1] * G[..., 0, 1])
