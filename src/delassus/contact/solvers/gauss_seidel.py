"""Projected Gauss–Seidel: one row or contact after the other, as if all others stood still.

A contact: the normal impulse that stops the approach, then the tangential one that stops sliding, or as much of it as
friction allows (for the convex model, one step of all three, projected onto the cone). m² multiplications a sweep.
It needs no factor and starts from anything; on feet of a robot a few sweeps are enough. Errors that many contacts
share, and mass ratios, take it hundreds or millions.

References: M. Jean, J.J. Moreau (1992); B. Brogliato, Nonsmooth Mechanics (2016).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan, while_loop
from delassus.contact.cones.kinds import Free
from delassus.contact.solvers.progress import FOREVER, Best, Budget, repeated
from delassus.contact.solvers.scaled import Scaled, length
from delassus.contact.solvers.smooth import second_order, tiny

ContactStep = Callable[[Any, Any, Any, Any, Any], Any]
"""New impulses of a contact from its G, impulses, velocities, friction, and relaxation."""


def gauss_seidel(problem: Scaled, best: Best, budget: Budget) -> Best:
    """From the best impulses so far to better ones, as many sweeps as it takes."""

    def step(held: Any, best: Best) -> tuple[Any, Best]:
        impulse, velocity = sweep(problem, *held)
        return (impulse, velocity), Best(impulse, velocity, problem.error(impulse, velocity), best.count + 1.0)

    return repeated(step, (best.impulse, best.velocity), best, budget)


def swept(problem: Scaled, best: Best, budget: Budget, sweeps: Any) -> Best:
    """What comes of so many sweeps, unless there is nothing to do; how good it is, is asked at the end alone."""
    wanted = np.where(best.open(budget), sweeps, 0.0)

    def body(carry: Any) -> Any:
        impulse, velocity, made = carry
        return *sweep(problem, impulse, velocity), made + 1.0

    start = (best.impulse, best.velocity, np.array(0.0))
    impulse, velocity, _ = while_loop(lambda carry: carry[2] < wanted, body, start, FOREVER)
    found = Best(impulse, velocity, problem.error(impulse, velocity), best.count + wanted)
    return found.where(wanted > 0.0, best)


def sweep(
    problem: Scaled, impulse: Any, velocity: Any, relaxation: Any = 1.0, one: ContactStep | None = None
) -> tuple[Any, Any]:
    """Impulses and velocities (m,) after one sweep over all rows, of which `one` solves a contact."""
    layout, G = problem.layout, problem.G
    impulse, velocity = np.array(impulse), np.array(velocity)
    for k in range(layout.scalars):
        new = row_step(problem, k, G[k, k], impulse[k], velocity[k], relaxation)
        velocity = velocity + G[:, k] * (new - impulse[k])
        impulse[k] = new
    one = one or (cone_step if problem.convex else coulomb_step)
    if layout.large and layout.torsional == 0:
        return _rolled(problem, impulse, velocity, one, relaxation)
    for k, at in enumerate(layout.blocks):
        new = one(G[at, at], impulse[at], velocity[at], problem.friction[k], relaxation)
        velocity = velocity + G[:, at] @ (new - impulse[at])
        impulse[at] = new
    return impulse, velocity


def row_step(problem: Scaled, k: int, response: Any, impulse: Any, velocity: Any, relaxation: Any) -> Any:
    """The impulse of a row before the contacts: what stops it, or as much of it as is allowed."""
    layout = problem.layout
    bounded = layout.scalars - layout.intervals
    new = impulse - velocity * (relaxation / np.where(response > 0.0, response, 1.0))
    if k >= bounded:
        return np.minimum(np.maximum(new, problem.lower[k - bounded]), problem.upper[k - bounded])
    return new if k < len(layout.rows(Free)) else np.maximum(new, 0.0)


def _rolled(problem: Scaled, impulse: Any, velocity: Any, one: ContactStep, relaxation: Any) -> tuple[Any, Any]:
    """The contacts of a sweep as a loop, which reads and changes the velocities of one contact after the other."""
    start, count = problem.layout.scalars, problem.layout.contacts
    places = start + 3.0 * numpy.arange(count)[:, None] + numpy.arange(3.0)
    rows = problem.G[start:].reshape(count, 3, -1)
    own = np.stack([problem.G[at, at] for at in problem.layout.blocks])

    def step(velocity: Any, contact: Any) -> tuple[Any, Any]:
        G, G_own, pushed, mu, place = contact
        new = one(G_own, pushed, np.take(velocity, place), mu, relaxation)
        return velocity + (new - pushed) @ G, new

    pushed = impulse[start:].reshape(count, 3)
    velocity, pushed = scan(step, velocity, (rows, own, pushed, problem.friction, np.array(places)))
    return np.concatenate([impulse[:start], pushed.reshape(-1)]), velocity


class ContactSteps(NamedTuple):
    """By how much a contact's impulse changes for a velocity along the normal, and along the tangents."""

    normal: Any
    tangents: Any


def steps_of(G: Any, relaxation: Any = 1.0) -> ContactSteps:
    """From a contact's own G."""
    n = len(G) - 1
    response = np.where(G[n, n] > 0.0, G[n, n], 1.0)
    return ContactSteps(relaxation / response, relaxation / _largest(G[:n, :n]))


def coulomb_step(G: Any, impulse: Any, velocity: Any, friction: Any, relaxation: Any) -> Any:
    """The impulses of a contact whose velocity would be that without a change."""
    return coulomb_move(G, steps_of(G, relaxation), impulse, velocity, friction)


def coulomb_move(G: Any, steps: ContactSteps, impulse: Any, velocity: Any, friction: Any) -> Any:
    """The same, where its steps are known."""
    n = len(impulse) - 1
    normal = np.maximum(impulse[n] - velocity[n] * steps.normal, 0.0)
    sliding = velocity[:n] + G[:n, n] * (normal - impulse[n])
    wanted = impulse[:n] - sliding * steps.tangents
    t, radius = length(wanted), friction * normal
    share = np.where(t > radius, radius / (t + tiny()), 1.0)
    return np.concatenate([share * wanted, np.stack([normal])])


def cone_step(G: Any, impulse: Any, velocity: Any, friction: Any, relaxation: Any) -> Any:
    """One step against the velocity, projected onto the cone."""
    wanted = impulse - velocity * (relaxation / _largest(G))
    t = length(wanted[:-1])
    onto = second_order(t, wanted[-1], friction, 0.0)
    return np.concatenate([onto.share * wanted[:-1], np.stack([onto.h])])


def _largest(G: Any) -> Any:
    """A bound of the largest eigenvalue of a small matrix, or one for none: the largest sum of a row."""
    bound = np.max(np.stack([np.sum(np.abs(row)) for row in G])) if len(G) > 2 else _largest_of_two(G)
    return np.where(bound > 0.0, bound, 1.0)


def _largest_of_two(G: Any) -> Any:
    half = 0.5 * (G[0, 0] - G[1, 1])
    return 0.5 * (G[0, 0] + G[1, 1]) + np.sqrt(half * half + G[0, 1] * G[0, 1])
