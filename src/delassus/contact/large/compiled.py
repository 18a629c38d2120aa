"""Compiled parts of the solvers of large problems; the size of their code is independent of the number of contacts.

The projection of one contact is a kernel, which NumPy calls for all contacts of a batch at once. A Gauss–Seidel sweep
is a compiled loop over contacts: m² multiplications without Python calls for each color. It is compiled for a few
sizes; other problems are padded with contacts that have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.compiler.tracing.flow.control import scan, while_loop
from delassus.contact.systems.smooth import coulomb, length, second_order, slopes
from delassus.contact.systems.sweep import cone_step, coulomb_step

Array = NDArray[numpy.float64]

SIZES: Final = (16, 20, 24, 28, 32, 36, 40, 44)
"""Numbers of contacts for which sweeps are compiled."""

_FOREVER: Final = 10**6
"""Upper bound on sweeps, not reached in practice."""


@dataclass(frozen=True)
class ContactCone:
    """The cone of one contact, by its number of rows."""

    rows: int


@kernel("(rows),(),()->(rows),(rows,rows)")
def project_contact(
    cone: ContactCone, x: Any, friction: Any, radius: Any, *, convex: bool = False, sharp: bool = False
) -> tuple[Floats, Floats]:
    """The smooth projection (rows,) of λ - σ of a contact, and its Jacobian (rows, rows), see `smooth`.

    With `convex` this is the projection onto the cone; with `sharp` the radius is zero.
    """
    t = length(x[:-1])
    projection = (second_order if convex else coulomb)(t, x[-1], friction, 0.0 if sharp else radius)
    y = np.concatenate([projection.share * x[:-1], np.stack([projection.h])])
    return y, slopes(projection, x[:-1] / np.where(t > 0.0, t, 1.0))


@lru_cache(32)
def contact_projection(rows: int, convex: bool, sharp: bool) -> Callable[..., tuple[Array, Array]]:
    """`project_contact` as a function of arrays (…, rows), (…) and (…)."""
    function: Callable[..., tuple[Array, Array]] = project_contact.specialize(
        ContactCone(rows), convex=convex, sharp=sharp
    )
    return function


@kernel("(rows),(rows),(),(rows)->()")
def contact_error(
    cone: ContactCone, impulse: Any, velocity: Any, friction: Any, limit: Any, *, convex: bool = False
) -> Floats:
    """The largest residual of a contact's rows, de Saxcé's or Alart and Curnier's, relative to its limit (rows,)."""

    def residual(kind: Any, x: Any) -> Any:
        t = length(x[:-1])
        projection = kind(t, x[-1], friction, 0.0)
        return impulse - np.concatenate([projection.share * x[:-1], np.stack([projection.h])])

    x = impulse - velocity
    if convex:
        return np.max(np.abs(residual(second_order, x)) / limit)
    lifted = np.concatenate([x[:-1], np.stack([x[-1] - friction * length(velocity[:-1])])])
    return np.max(np.maximum(np.abs(residual(second_order, lifted)), np.abs(residual(coulomb, x))) / limit)


@lru_cache(32)
def contact_errors(rows: int, convex: bool) -> Callable[..., Array]:
    """`contact_error` as a function of arrays (…, rows), (…, rows), (…) and (…, rows)."""
    function: Callable[..., Array] = contact_error.specialize(ContactCone(rows), convex=convex)
    return function


@dataclass(frozen=True)
class Pile:
    """Contacts of three rows each, and no other rows."""

    contacts: int

    @property
    def m(self) -> int:
        """The number of rows."""
        return 3 * self.contacts


@kernel("(m,m),(m),(m),(contacts),()->(m),(m)")
def sweep_pile(
    pile: Pile, G: Any, velocity: Any, impulse: Any, friction: Any, sweeps: Any, *, convex: bool = False
) -> tuple[Floats, Floats]:
    """Impulses and velocities (m,) after a number of Gauss–Seidel sweeps, see `solvers.gauss_seidel`."""
    n, one = pile.contacts, cone_step if convex else coulomb_step
    offsets = np.array(3.0 * numpy.arange(n)[:, None] + numpy.arange(3.0))
    rows, blocks = G.reshape(n, 3, -1), np.stack([G[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] for k in range(n)])

    def step(velocity: Any, contact: Any) -> tuple[Any, Any]:
        G, G_own, old, mu, offset = contact
        new = one(G_own, old, np.take(velocity, offset), mu, 1.0)
        return velocity + (new - old) @ G, new

    def sweep(carry: Any) -> Any:
        impulse, velocity, count = carry
        velocity, new = scan(step, velocity, (rows, blocks, impulse.reshape(n, 3), friction, offsets))
        return new.reshape(-1), velocity, count + 1.0

    start = (impulse, velocity, np.array(0.0))
    impulse, velocity, _ = while_loop(lambda carry: carry[2] < sweeps, sweep, start, _FOREVER)
    return impulse, velocity


@lru_cache(8)
def _sweeps(contacts: int, convex: bool) -> Callable[..., tuple[Array, Array]]:
    function: Callable[..., tuple[Array, Array]] = sweep_pile.specialize(Pile(contacts), convex=convex)
    return function


def sweep_compiled(
    G: Array, velocity: Array, impulse: Array, friction: Array, sweeps: int, convex: bool
) -> tuple[Array, Array]:
    """Impulses and velocities (B, m) after a number of sweeps, for problems of contacts with three rows each."""
    count, m = velocity.shape
    contacts = min(size for size in SIZES if 3 * size >= m)
    padding = 3 * contacts - m
    if padding:
        G = numpy.pad(G, ((0, 0), (0, padding), (0, padding)))
        velocity, impulse = (numpy.pad(x, ((0, 0), (0, padding))) for x in (velocity, impulse))
        friction = numpy.pad(friction, ((0, 0), (0, padding // 3)))
    arrays = (G, velocity, impulse, friction)
    if count == 1:  # a single problem uses scalar code
        new = _sweeps(contacts, convex)(*(x[0] for x in arrays), float(sweeps))
        return new[0][None, :m], new[1][None, :m]
    new = _sweeps(contacts, convex)(*arrays, float(sweeps))
    return new[0][:, :m], new[1][:, :m]
