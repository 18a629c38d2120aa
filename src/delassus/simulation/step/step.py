"""The kernels of a simulation: a control period, its contact problem, and where a robot may touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.inputs import Group, Input
from delassus.compiler.host.kernel import Floats, Kernel, kernel
from delassus.contact.cones.parameters import ContactParameters
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.model.links import links_of
from delassus.simulation.step.advance import period, solve_impulses
from delassus.simulation.step.contacts import GroundShape, all_touches
from delassus.simulation.step.problem import Given, beginning, problem_of
from delassus.simulation.step.solve import PATIENCE, TOLERANCE, Limits
from delassus.simulation.step.world import World

MATERIAL: Final = Group(
    ContactParameters,
    friction=Input("()", 0.7),
    torsional=Input("()", 0.0),
    rolling=Input("()", 0.0),
    restitution=Input("()", 0.0),
)
GROUND: Final = Group(
    GroundShape,
    normal=Input("(3)", (0.0, 0.0, 1.0)),
    height=Input("()", 0.0),
    heights=Input("(field_rows,field_columns)", shared=True),
)
LIMITS: Final = Group(Limits, tolerance=Input("()", TOLERANCE), patience=Input("()", PATIENCE))
INPUTS: Final = {"material": MATERIAL, "ground": GROUND, "limits": LIMITS}
SIGNATURE: Final = "(nq),(nv),(rows),(places),(),(),{control}()->(nq),(nv),(rows),(places),(),(),()"
"""Without rows, contacts or controls their arrays have one element, which means nothing: kernels need some."""


@kernel(SIGNATURE.format(control="(controls),"), inputs=INPUTS)
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
    material: ContactParameters,
    ground: GroundShape,
    limits: Limits,
) -> tuple[Floats, ...]:
    """q, v, impulses and contacts after a period; residual [m/s], iterations, `Mark`."""
    given = step_inputs(control, time_step, material, ground, limits)
    return period(world, q, v, impulse, contact, time, alive, control, given)


def simulate_with(policy: Callable[[Any, Any, Any], Any]) -> Kernel[..., Any]:
    """The same kernel with a traced function of time, q and v in place of the controls."""

    @kernel(SIGNATURE.format(control=""), inputs=INPUTS)
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
        material: ContactParameters,
        ground: GroundShape,
        limits: Limits,
    ) -> tuple[Floats, ...]:
        """As `simulate`."""
        given = step_inputs(None, time_step, material, ground, limits)
        control = np.array(policy(time, q, v))
        return period(world, q, v, impulse, contact, time, alive, control, given)

    return simulate_policy


def step_inputs(
    control: Any, time_step: Any, material: ContactParameters, ground: GroundShape, limits: Limits
) -> Given:
    """What the steps of a period share, of the structures that kernels take."""
    shape = ground._replace(normal=np.array(ground.normal))
    rubbing = {"torsional": material.torsional, "rolling": material.rolling}
    return Given(control, time_step, shape, material.friction, material.restitution, limits, **rubbing)


@kernel("(nq),(nv),(rows),(places),(controls),(),()->(m,m),(m)", inputs={"material": MATERIAL, "ground": GROUND})
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
    material: ContactParameters,
    ground: GroundShape,
) -> tuple[Floats, Floats]:
    """G (m, m) and g (m,) of the contact problem of the next step, with the restitution that adds no energy."""
    given = step_inputs(control[: world.nu], time_step, material, ground, Limits(TOLERANCE, PATIENCE))
    problem = problem_of(world, beginning(world, q, v, impulse, contact, time), given, time + time_step)
    g = problem.g
    if world.bounces:
        _, share = solve_impulses(world, problem, given)
        g = g - (1.0 - share) * problem.thrown
    return problem.rows.response(problem.S), g


@kernel("(nq)->(candidates),(candidates,3),(candidates,3)", inputs={"ground": GROUND})
def candidate_geometry(world: World, q: Any, *, ground: GroundShape) -> tuple[Floats, Floats, Floats]:
    """Gaps (candidates,) [m], points and normals (candidates, 3) in the world."""
    tree = links_of(world.model)
    return all_touches(world, tree, world_poses(tree, q), ground._replace(normal=np.array(ground.normal)))
