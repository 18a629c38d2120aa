"""The kernel of predictive sampling: a whole horizon of a simulation, and its cost, in one loop.

    J = Σ l(t_k, q_k, v_k, u_k) T + L(t_N, q_N, v_N),   k = 0 … N - 1,   T the control period

A rollout that needs more than the reduced contact set of its simulation (see `reduced_scene`) stops before that period,
and continues with the full set. If the solver of the simulation fails in a step, the rollout continues with that of
`Scene.fallback`. A rollout with NaN in its state has the cost NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, Kernel, kernel
from delassus.compiler.tracing.flow.control import scan
from delassus.contact.cones.parameters import ContactParameters
from delassus.step.flags import Mark
from delassus.step.period.kernels import GROUND, MATERIAL, step_inputs
from delassus.step.period.period import PeriodStart, take_period
from delassus.step.scene import Scene
from delassus.step.scene_sizes import HasScene
from delassus.step.stages.types import MAX_ITERATIONS, TOLERANCE, GroundShape, SolverLimits

STATE: Final = "(nq),(nv),(impulse_size),(slot_size),(),(),()"
"""q, v, impulses, contacts, time, cost and periods so far: the state in which a rollout continues."""
SIGNATURE: Final = STATE + ",(horizon,control_size),()->" + STATE + ",()"
PATH: Final = ",(horizon,nq),(horizon,nv)"

StageCost = Callable[[Any, Any, Any, Any], Any]
FinalCost = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Horizon(HasScene):
    """A scene, and the number of control periods of a rollout."""

    scene: Scene
    horizon: int


class RolloutResult(NamedTuple):
    """The last state of a rollout; `mark` has the flags of a period. The path has q and v of all periods."""

    q: Any
    v: Any
    impulse: Any
    contact: Any
    time: Any
    cost: Any
    made: Any
    mark: Any
    path_q: Any = None
    path_v: Any = None


def rollout_kernel(stage: StageCost | None, final: FinalCost | None) -> Kernel[..., Any]:
    """The kernel with traced costs, both of one state; without a stage cost, it returns the path of states."""

    @kernel(
        SIGNATURE + ("" if stage else PATH),
        inputs={"material": MATERIAL, "ground": GROUND, "tolerance": "()"},
    )
    def rollout(
        ahead: Horizon,
        q: Any,
        v: Any,
        impulse: Any,
        contact: Any,
        time: Any,
        cost: Any,
        made: Any,
        controls: Any,
        time_step: Any,
        *,
        material: ContactParameters,
        ground: GroundShape,
        tolerance: Any = TOLERANCE,
    ) -> tuple[Floats, ...]:
        """The final state, its time, the cost, the number of periods, `Mark`, and the path if requested."""
        scene, limits = ahead.scene, SolverLimits(tolerance, np.array(MAX_ITERATIONS))
        duration = time_step * float(scene.substeps)

        def advance(carry: Any, item: Any) -> Any:
            q, v, impulse, contact, time, cost, made, mark = carry
            number, control = item
            going = (made == number) & (mark < 0.5)
            price = np.array(0.0) if stage is None else stage(time, q, v, control[: scene.nu]) * duration
            alive = np.where(going, 1.0, 0.0)
            inputs = step_inputs(control, time_step, material, ground, limits)
            *state, _, _, now = take_period(scene, PeriodStart(q, v, impulse, contact, time, alive), inputs)
            needs_more = (now == float(Mark.NEEDS_FULL_SET)) | (now == float(Mark.NEEDS_ITERATIONS))
            stops = np.where(needs_more | (now % 2.0 > 0.5), now, 0.0)  # FROZEN is the lowest bit
            went = going & (stops < 0.5)
            count = np.where(went, 1.0, 0.0)
            cost = np.where(went, cost + price, cost)
            carry = (*state, time + count * duration, cost, made + count, np.where(going, stops, mark))
            return carry, (None if stage else (q, v))

        periods = numpy.arange(float(ahead.horizon))
        first = (q, v, impulse, contact, time, cost, made, np.array(0.0))
        last, path = scan(advance, first, (periods, controls))
        q, v, impulse, contact, time, cost, made, mark = last
        if final is not None:
            cost = np.where(made == float(ahead.horizon), cost + final(time, q, v), cost)
        cost = np.where(mark == float(Mark.FROZEN), numpy.nan, cost)
        return (q, v, impulse, contact, time, cost, made, mark, *(() if stage else path))

    return rollout
