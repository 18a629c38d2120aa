"""Sequential impulses with graph coloring: contacts of one color share no node and are updated together.

For each contact, with the response D of its own rows, the impulse that cancels its velocity is projected onto the cone,
and its change is applied to its nodes: v ← v + B⁻¹ J_cᵀ Δλ, with the blocks B of W. This requires a block diagonal W:
bricks, or particles without elements.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import delassus.numpy as dnp
from delassus.compiler.host.kernel import kernel
from delassus.contact.cones.second_order import project
from delassus.particles.contact.bricks import Touches
from delassus.particles.contact.operator import ContactOperator, contact_rows
from delassus.particles.solvers.coloring import colors
from delassus.particles.solvers.sweeps import SweepError, by_blocks, element_work, sweep_elements
from delassus.particles.solvers.system import RowSolution, System, solve_status

Array = NDArray[np.float64]


class _Size(NamedTuple):
    """The number of velocities that a contact acts on."""

    k3: int


@kernel("(k3),(3,k3),(3,k3),(3),(),(),(3)->(k3),(3)")
def contact_sweep(
    size: _Size, v: Any, rows: Any, towards: Any, target: Any, unit: Any, friction: Any, impulse: Any
) -> tuple[Any, Any]:
    """Update one contact: velocities (k3,) of its nodes and its impulse, from its rows J, J B⁻¹, and b."""
    sigma = rows @ v + target
    slide = dnp.sqrt(sigma[0] * sigma[0] + sigma[1] * sigma[1])
    lifted = sigma + dnp.array([0.0, 0.0, 1.0]) * (friction * slide)
    after = project(impulse - unit * lifted, friction)
    return v + (after - impulse) @ towards, after


def sweep_to_tolerance(
    operator: ContactOperator, g: Array, friction: float, start: Array, tolerance: float, iterations: int
) -> tuple[Array, float, int]:
    """Impulses (m,), the largest change of a velocity in the last sweep relative to the largest free one, and
    sweeps.
    """
    system = operator.system
    if system.stiff is not None or len(system.R):
        raise SweepError(
            "sequential impulses of contacts need particles without elements; use the method 'sequential_impulses' "
            "for both, or the contact method 'admm'.",
            code="not-supported",
        )
    inverse = np.asarray(np.linalg.inv(system.diagonal), float)
    scale = max(float(np.abs(g).max(initial=0.0)), 1e-300)
    impulse, work = np.array(start), contact_work(operator.groups, inverse, g)
    v = (inverse @ (operator.JT @ impulse).reshape(-1, 3, 1))[..., 0]
    change, sweeps = np.inf, 0
    while sweeps < iterations and change > tolerance * scale:
        change, sweeps = sweep_contacts(work, v, impulse, friction), sweeps + 1
    return impulse, change / scale, sweeps


def sweep_elements_and_contacts(
    system: System, groups: list[Touches], target: Array, friction: float, start: Array, v: Array, impulse: Array,
    tolerance: float, iterations: int,
) -> tuple[RowSolution, Array]:  # fmt: skip
    """Elements and contacts in the same sweeps, projected Gauss–Seidel: the solution, and impulses of contacts (m,)."""
    response = by_blocks(system)
    JT = contact_rows(groups, system.structure.particles.nodes).T
    contact_impulse, element_impulse = np.array(start), np.array(impulse)
    velocity = response.free(v) + response.solve(system.JT @ element_impulse + JT @ contact_impulse)
    at = velocity.reshape(-1, 3)
    elements, contacts = element_work(system, response), contact_work(groups, response.inverse, target)
    error, sweeps = np.inf, 0
    while sweeps < iterations and error > tolerance:
        sweep_elements(elements, at, element_impulse)
        change, sweeps = sweep_contacts(contacts, at, contact_impulse, friction), sweeps + 1
        error = max(system.unmet(system.left(velocity, element_impulse)), change / system.speed)
    return RowSolution(velocity, element_impulse, error, sweeps, solve_status(error, tolerance)), contact_impulse


def contact_work(groups: list[Touches], inverse: Array, target: Array) -> list[Any]:
    """The data of a sweep by color: nodes, rows, rows times W⁻¹, b, units, and indices of impulses."""
    work, at = [], 0
    for touches in groups:
        c, k = touches.nodes.shape
        towards = np.einsum("craj,cajk->crak", touches.rows, inverse[touches.nodes])
        G = np.einsum("craj,csaj->crs", towards, touches.rows)
        unit = 1.0 / np.maximum(np.linalg.eigvalsh(G)[:, -1], 1e-300)
        for color in colors(touches.nodes, len(inverse)):
            where = at + 3 * color[:, None] + np.arange(3)
            flat = (len(color), 3, 3 * k)
            rows, to = touches.rows[color].reshape(flat), towards[color].reshape(flat)
            work.append((_Size(3 * k), touches.nodes[color], rows, to, target[where], unit[color], where))
        at += 3 * c
    return work


def sweep_contacts(work: list[Any], v: Array, impulse: Array, friction: float) -> float:
    """One sweep over all contacts, in place; the largest change of a velocity [m/s]."""
    change = 0.0
    for size, nodes, rows, to, target, unit, where in work:
        before = v[nodes].reshape(len(nodes), -1)
        after, new = contact_sweep(size, before, rows, to, target, unit, friction, impulse[where])
        change = max(change, float(np.abs((new - impulse[where]) / unit[:, None]).max()))
        v[nodes] = after.reshape(len(nodes), -1, 3)
        impulse[where] = new
    return change
