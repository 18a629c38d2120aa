"""Position correction in a step, without a change of velocities.

    W δ = Jᵀ μ,      J δ ≥ d  ⊥  μ ≥ 0  for contacts and limits,      J δ = d  for constraints

d (m,) is the demanded displacement of the rows: a fraction of penetrations, at most the gap for open contacts, or the
full error of constraints. The caller chooses the solver of μ: a few sweeps if the next step continues the correction, a
solve to a tolerance if the result is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.linalg.lu import solve_without_pivots
from delassus.step.scene import Scene
from delassus.step.scheme.response import Response
from delassus.step.stages.assemble import StepSystem
from delassus.step.stages.collide import SLOP, Contacts

_CORRECTED: Final = 0.2
"""The fraction of a penetration corrected in a step."""

_FASTEST: Final = 1.0
"""Largest speed [m/s] at which a contact is moved out of the ground, so that δ stays small."""

LEAN: Final = 1e-2
"""Regularization of the normal response of a contact, relative to its tangential response: without it, joints that
hardly move the contact out of the ground would be displaced far."""

_REDUNDANT: Final = 1e-9
"""Relative regularization of the response of loop rows, which may be redundant."""

SWEEPS: Final = 10
"""Number of projected Gauss–Seidel sweeps."""

_FAR: Final = 100.0
"""Gaps are clipped to this multiple of the largest error."""


class Correction(NamedTuple):
    """A displacement (nv,), and the status of its solver."""

    displacement: Any
    status: Any


def correct_positions(response: Response, demand: Any, solve: Callable[[Any], tuple[Any, Any]]) -> Correction:
    """δ (nv,) that meets a demand (m,); `solve` maps the demand to impulses (m,) and a status."""
    impulse, status = solve(demand)
    return Correction(response.respond(impulse), status)


def correct_penetration(scene: Scene, contacts: Contacts, system: StepSystem, v: Any, time_step: Any) -> Any:
    """δ (nv,) that corrects a fraction of all penetrations and closes no gap; zero if nothing penetrates.

    A few sweeps of projected Gauss–Seidel on normals of contacts and limits, with loops kept closed.
    """
    rows = scene.unilateral_rows
    if not rows:
        return np.zeros(scene.nv)
    gap = np.concatenate([contacts.gap, system.rows.stop_gap])

    def correct(v: Any) -> Any:
        predicted = gap + time_step * system.velocities(v)[rows]
        demand = penetration_demand(scene, gap, predicted, time_step)
        return correct_positions(system, demand, lambda d: (sweep_beside_loops(scene, system, d), None)).displacement

    return cond(np.min(gap) < -SLOP, correct, np.zeros(scene.nv), v)


def penetration_demand(scene: Scene, gap: Any, predicted: Any, time_step: Any) -> Any:
    """d of unilateral rows: a fraction of a penetration, else minus the gap predicted for the end of the step."""
    most = np.concatenate([np.full(scene.slots, _FASTEST * time_step), np.full(len(scene.stop_rows), np.inf)])
    return _demand(gap, predicted, most)


def contact_demand(gap: Any, predicted: Any, time_step: Any) -> Any:
    """The largest correction demanded by contacts, for one or several states."""
    return _demand(gap, predicted, _FASTEST * time_step)


def stop_demand(gap: Any, predicted: Any) -> Any:
    """The same for joint limits and one-sided constraints, whose correction has no largest speed."""
    return _demand(gap, predicted, np.inf)


def _demand(gap: Any, predicted: Any, most: Any) -> Any:
    return np.where(gap < -SLOP, np.minimum(-_CORRECTED * gap, most), -np.maximum(predicted, 0.0))


def limited_bias(scene: Scene, b: Any) -> Any:
    """b = -d (m,), with gaps clipped to a multiple of the largest error: larger gaps would dominate the tolerance of a
    solver."""
    pushing = scene.unilateral_rows
    if not pushing:
        return b
    violated = np.array(b)
    violated[pushing] = np.minimum(b[pushing], 0.0)
    b = np.array(b)
    b[pushing] = np.minimum(b[pushing], _FAR * np.max(np.abs(violated)))
    return b


class _Sweep(NamedTuple):
    """Impulses (rows,) after some sweeps."""

    impulse: Any
    count: Any


def sweep_beside_loops(scene: Scene, system: StepSystem, demand: Any) -> Any:
    """Impulses (m,) of unilateral rows by sweeps, and of loops, which stay closed."""
    rows = scene.unilateral_rows
    if system.S is None:  # without loops
        G, own = system.delassus_among(rows, range(scene.contact_end))
        reaction = np.zeros((0, len(rows)))
    else:
        delassus = system.delassus(scene.m - len(scene.friction_rows))
        G, reaction = _response_beside_loops(scene, delassus, rows)
        own = [delassus[k, k] for k in range(scene.contact_end)]
    diagonal = np.array([G[k, k] for k in range(len(rows))])
    for k, n in enumerate(scene.normals):
        diagonal[k] = diagonal[k] + LEAN * np.maximum(own[n - 2], own[n - 1])
    diagonal = np.where(diagonal > 0.0, diagonal, 1.0)

    def sweep(now: _Sweep) -> _Sweep:
        push = np.array(now.impulse)
        for k in range(len(rows)):
            push[k] = np.maximum((demand[k] - G[k] @ push + G[k, k] * push[k]) / diagonal[k], 0.0)
        return _Sweep(push, now.count + 1.0)

    start = _Sweep(np.zeros(len(rows)), np.array(0.0))
    push = while_loop(lambda now: now.count < float(SWEEPS), sweep, start, SWEEPS).impulse
    impulse = np.zeros(scene.m)
    for k, row in enumerate(rows):
        impulse[row] = push[k]
    impulse[scene.bilateral] = reaction @ push
    return impulse


def _response_beside_loops(scene: Scene, G: Any, rows: list[int]) -> tuple[Any, Any]:
    """The response of some rows to each other while loops stay closed, and the loop impulses per impulse of each
    row."""
    loops = list(range(scene.m)[scene.bilateral])
    if not loops:
        return G[rows][:, rows], np.zeros((0, len(rows)))
    diagonal = np.array([G[k, k] for k in loops])
    across = G[loops][:, rows]
    regularization = np.diag(np.where(diagonal > 0.0, _REDUNDANT * diagonal, 1.0))
    reaction = -solve_without_pivots(G[loops][:, loops] + regularization, across)
    return G[rows][:, rows] + across.T @ reaction, reaction
