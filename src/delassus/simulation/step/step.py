"""The kernels of a simulation: a control period, its contact problem, and where a robot may touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, Kernel, kernel
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.model.links import links_of
from delassus.simulation.actuators.activation import activate
from delassus.simulation.step.advance import period, solve_impulses
from delassus.simulation.step.contacts import GroundNumbers, all_touches
from delassus.simulation.step.problem import Given, beginning, problem_of
from delassus.simulation.step.solve import PATIENCE, TOLERANCE, Limits
from delassus.simulation.step.world import World

GROUND_INPUTS: Final = {
    "friction": "()",
    "restitution": "()",
    "torsional": "()",
    "rolling": "()",
    "normal": "(3)",
    "height": "()",
}
INPUTS: Final = {**GROUND_INPUTS, "tolerance": "()", "patience": "()"}
SIGNATURE: Final = "(nq),(nv),(rows),(places),(),(),{control}()->(nq),(nv),(rows),(places),(),(),()"
"""Without rows, contacts or controls their arrays have one element, which means nothing: kernels need some."""
SHARED: Final = {"heights": "(field_rows,field_columns)"}


@kernel(SIGNATURE.format(control="(controls),"), inputs=INPUTS, shared=SHARED)
def simulate(
    world: World,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    time: Any,
    alive: Any,
    control: Any,
    time_step: Any,
    *,
    friction: Any = 0.7,
    restitution: Any = 0.0,
    torsional: Any = 0.0,
    rolling: Any = 0.0,
    normal: Any = (0.0, 0.0, 1.0),
    height: Any = 0.0,
    tolerance: Any = TOLERANCE,
    patience: Any = PATIENCE,
    heights: Any = None,
) -> tuple[Floats, ...]:
    """q, v, impulses and contacts after a period; residual [m/s], iterations, `Mark`."""
    ground = GroundNumbers(np.array(normal), height, heights)
    given = Given(control, time_step, ground, friction, restitution, Limits(tolerance, patience), torsional, rolling)
    return period(world, q, v, impulse, contact, time, alive, control, given)


def simulate_with(policy: Callable[[Any, Any, Any], Any]) -> Kernel[..., Any]:
    """The same kernel with a traced function of time, q and v in place of the controls."""

    @kernel(SIGNATURE.format(control=""), inputs=INPUTS, shared=SHARED)
    def simulate_policy(
        world: World,
        q: Any,
        v: Any,
        impulse: Any,
        contact: Any,
        time: Any,
        alive: Any,
        time_step: Any,
        *,
        friction: Any = 0.7,
        restitution: Any = 0.0,
        torsional: Any = 0.0,
        rolling: Any = 0.0,
        normal: Any = (0.0, 0.0, 1.0),
        height: Any = 0.0,
        tolerance: Any = TOLERANCE,
        patience: Any = PATIENCE,
        heights: Any = None,
    ) -> tuple[Floats, ...]:
        """As `simulate`."""
        ground = GroundNumbers(np.array(normal), height, heights)
        given = Given(None, time_step, ground, friction, restitution, Limits(tolerance, patience), torsional, rolling)
        control = np.array(policy(time, q, v))
        return period(world, q, v, impulse, contact, time, alive, control, given)

    return simulate_policy


@kernel("(nq),(nv),(rows),(places),(controls),(),()->(m,m),(m)", inputs=GROUND_INPUTS, shared=SHARED)
def assemble_step(
    world: World,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    control: Any,
    time: Any,
    time_step: Any,
    *,
    friction: Any = 0.7,
    restitution: Any = 0.0,
    torsional: Any = 0.0,
    rolling: Any = 0.0,
    normal: Any = (0.0, 0.0, 1.0),
    height: Any = 0.0,
    heights: Any = None,
) -> tuple[Floats, Floats]:
    """G (m, m) and g (m,) of the contact problem of the next step, with the restitution that adds no energy."""
    ground = GroundNumbers(np.array(normal), height, heights)
    rubbing = {"torsional": torsional, "rolling": rolling}
    signals, _ = activate(world.actuators, impulse[world.m : world.m + world.na], control[: world.nu], time_step)
    given = Given(signals, time_step, ground, friction, restitution, **rubbing)
    problem = problem_of(world, beginning(world, q, v, impulse, contact, time), given, time + time_step)
    g = problem.g
    if world.bounces:
        _, share = solve_impulses(world, problem, given)
        g = g - (1.0 - share) * problem.thrown
    return problem.rows.response(problem.S), g


@kernel("(nq)->(candidates),(candidates,3),(candidates,3)", inputs={"normal": "(3)", "height": "()"}, shared=SHARED)
def candidate_geometry(
    world: World, q: Any, *, normal: Any = (0.0, 0.0, 1.0), height: Any = 0.0, heights: Any = None
) -> tuple[Floats, Floats, Floats]:
    """Gaps (candidates,) [m], points and normals (candidates, 3) in the world."""
    tree = links_of(world.model)
    return all_touches(world, tree, world_poses(tree, q), GroundNumbers(np.array(normal), height, heights))
