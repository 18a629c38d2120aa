"""Sequential impulses on contacts, coloured: contacts of one colour share no node and are done at once, in lanes.

For each contact, with the response D of its own three rows, the impulse that brings its velocity to zero is projected
onto the cone, and what changed moves its nodes: v ← v + B⁻¹ J_cᵀ Δλ, with the blocks B of W. That needs W to be block
diagonal: bricks, or particles without elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import delassus.numpy as dnp
from delassus.compiler.host.kernel import kernel
from delassus.contact.cones.second_order import project
from delassus.errors import DelassusError
from delassus.particles.solvers.coloring import colors

if TYPE_CHECKING:
    from delassus.particles.contact.operator import ContactOperator

Array = NDArray[np.float64]


class SweepError(DelassusError, ValueError):
    """Sweeps over contacts of a system that they cannot solve."""


class _Size(NamedTuple):
    """How many velocities a contact acts on."""

    k3: int


@kernel("(k3),(3,k3),(3,k3),(3),(),(),(3)->(k3),(3)")
def contact_sweep(
    size: _Size, v: Any, rows: Any, towards: Any, asked: Any, unit: Any, friction: Any, impulse: Any
) -> tuple[Any, Any]:
    """One contact: velocities (k3,) of its nodes and its impulse after it, from its rows J, J B⁻¹, and b."""
    sigma = rows @ v + asked
    slide = dnp.sqrt(sigma[0] * sigma[0] + sigma[1] * sigma[1])
    lifted = sigma + dnp.array([0.0, 0.0, 1.0]) * (friction * slide)
    after = project(impulse - unit * lifted, friction)
    return v + (after - impulse) @ towards, after


def swept(
    operator: ContactOperator, g: Array, friction: float, start: Array, tolerance: float, iterations: int
) -> tuple[Array, float, int]:
    """Impulses (m,), the largest change of a velocity in the last sweep as a share of the largest of g, and sweeps."""
    system = operator.system
    if system.stiff is not None or system.assembly.m:
        raise SweepError(
            "sequential impulses of contacts need particles that elements do not tie together: take the contact method "
            "'newton'."
        )
    inverse = np.linalg.inv(system.diagonal)
    scale = max(float(np.abs(g).max(initial=0.0)), 1e-300)
    v, impulse, work, at = np.zeros((len(inverse), 3)), np.array(start), [], 0
    for touches in operator.groups:
        c, k = touches.nodes.shape
        towards = np.einsum("craj,cajk->crak", touches.rows, inverse[touches.nodes])
        G = np.einsum("craj,csaj->crs", towards, touches.rows)
        unit = 1.0 / np.maximum(np.linalg.eigvalsh(G)[:, -1], 1e-300)
        for chosen in colors(touches.nodes, len(inverse)):
            where = at + 3 * chosen[:, None] + np.arange(3)
            flat = (len(chosen), 3, 3 * k)
            rows, to = touches.rows[chosen].reshape(flat), towards[chosen].reshape(flat)
            work.append((_Size(3 * k), touches.nodes[chosen], rows, to, g[where], unit[chosen], where))
        at += 3 * c
    v += (inverse @ (operator.JT @ impulse).reshape(-1, 3, 1))[..., 0]
    change, made = np.inf, 0
    while made < iterations and change > tolerance * scale:
        change, made = 0.0, made + 1
        for size, nodes, rows, to, asked, unit, where in work:
            before = v[nodes].reshape(len(nodes), -1)
            after, new = contact_sweep(size, before, rows, to, asked, unit, friction, impulse[where])
            change = max(change, float(np.abs((new - impulse[where]) / unit[:, None]).max()))
            v[nodes] = after.reshape(len(nodes), -1, 3)
            impulse[where] = new
    return impulse, change / scale, made
