"""Projected Gauss–Seidel: sweeps over the contacts until all residuals are below the tolerance.

m² multiplications a sweep with a matrix; see `systems.sweep` for the update of a contact. It needs no factorization and
starts anywhere. For the feet of a robot a few sweeps suffice; errors shared by many contacts, and large mass ratios,
take hundreds to millions.

References: M. Jean, J.J. Moreau (1992); B. Brogliato, Nonsmooth Mechanics (2016).
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.contact.solvers.progress import FOREVER, Best, Budget, iterate
from delassus.contact.solvers.registry import register_solver
from delassus.contact.systems.protocol import SWEEP, SweptSystem


@register_solver("pgs", needs={SWEEP})
@register_solver("sequential_impulses", needs={SWEEP})
def gauss_seidel(system: SweptSystem, best: Best, budget: Budget) -> Best:
    """Sweep from the best impulses until convergence.

    On the velocities of bodies it is called "sequential_impulses"; the iterates are the same.
    """

    def step(carry: Any, best: Best) -> tuple[Any, Best]:
        impulse, response = system.sweep(*carry)
        velocity = system.velocity_of(response, impulse)
        return (impulse, response), Best(impulse, velocity, system.error(impulse, velocity), best.count + 1.0)

    return iterate(step, (best.impulse, system.respond(best.impulse, best.velocity)), best, budget)


def sweep_repeatedly(system: SweptSystem, best: Best, budget: Budget, sweeps: Any) -> Best:
    """Run a number of sweeps, unless the best impulses are good already; the error is computed only at the end."""
    count = np.where(best.open(budget), sweeps, 0.0)
    impulse, response = repeat_sweeps(system, best.impulse, system.respond(best.impulse, best.velocity), count)
    velocity = system.velocity_of(response, impulse)
    candidate = Best(impulse, velocity, system.error(impulse, velocity), best.count + count)
    return candidate.where(count > 0.0, best)


def repeat_sweeps(system: SweptSystem, impulse: Any, response: Any, sweeps: Any) -> tuple[Any, Any]:
    """Impulses (m,) and the response after a number of sweeps that is known at run time."""

    def body(carry: Any) -> Any:
        impulse, response, count = carry
        return *system.sweep(impulse, response), count + 1.0

    carry = (impulse, response, np.array(0.0))
    impulse, response, _ = while_loop(lambda carry: carry[2] < sweeps, body, carry, FOREVER)
    return impulse, response
