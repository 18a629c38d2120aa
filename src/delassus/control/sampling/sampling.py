"""`Sampling`: controls by predictive sampling, thousands of rollouts in one call of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import (
    FINITE,
    array_of_shape,
    check_integer,
    number_in_range,
)
from delassus.common.frozen import Frozen, read_only
from delassus.common.options import Shortcuts
from delassus.common.types import ArrayLike
from delassus.compiler.host.kernel import Kernel
from delassus.compiler.host.retry import Attempt, Batch, Results, retry
from delassus.control.sampling.checks import SamplingError, call_cost, limits_of, noise_of, traced_cost
from delassus.control.sampling.methods import SamplingDistribution, best, cross_entropy, mppi
from delassus.control.sampling.options import (
    MOST,
    SAMPLING_METHODS,
    BestSample,
    CrossEntropy,
    PathIntegral,
    SearchOptions,
    SplineOptions,
)
from delassus.control.sampling.plan import Plan, PlanStatus
from delassus.control.sampling.rollout import Horizon, RolloutResult, rollout_kernel
from delassus.control.sampling.splines import shift_matrix, spline_matrix
from delassus.errors import expect
from delassus.simulation.ground import structures
from delassus.simulation.runner import pad_empty
from delassus.simulation.simulation import Simulation
from delassus.simulation.state import State, is_alive
from delassus.step.flags import Mark

Array = NDArray[np.float64]

KNOTS = 8
"""Default number of knots of the spline."""

_SHORTCUTS: Final = Shortcuts(
    "Sampling",
    "sim cost horizon final limits",
    code="unknown-method",
    method=SAMPLING_METHODS,
    plan=SplineOptions(),
    search=SearchOptions(),
)


class Sampling(Frozen):
    """Model predictive control by sampling: simulates many control sequences and applies the best.

        planner = dl.control.Sampling(sim, cost, horizon=50, samples=1024, limits=20.0)
        plan = planner.start(seed=0)
        plan = planner.improve(plan, state)
        state = sim.step(state, plan.control)

    The cost of a plan is Σ cost(t, q, v, u) T over the horizon, with T the control period, plus final(t, q, v) at its
    end. A cost is a kernel `(model, time, q, v, u) -> ()`, compiled into the rollouts, or a NumPy function of all
    rollouts: time is (horizon,), q (…, horizon, nq), and it returns (…, horizon).

    >>> sim = dl.Simulation(dl.load("cart_pole"), time_step=0.02, touching=())
    >>> planner = dl.control.Sampling(sim, lambda time, q, v, u: q[..., 0] ** 2, horizon=10, samples=8, limits=5.0)
    >>> planner.improve(planner.start(), sim.start([0.1, 0.0])).controls.shape
    (10, 2)
    """

    def __init__(
        self,
        sim: Simulation,
        cost: Callable[..., Any],
        horizon: int,
        *,
        final: Callable[..., Any] | None = None,
        limits: Any = None,
        method: str | PathIntegral | CrossEntropy | BestSample = "mppi",
        plan: SplineOptions | None = None,
        search: SearchOptions | None = None,
        **shortcuts: Any,
    ) -> None:
        """Create a planner; compilation happens at the first use.

        Args:
            sim: Simulation of the rollouts: the controlled one, or one with longer steps.
            cost: Cost per second of a state and a control.
            horizon: Number of control periods of a rollout.
            final: Cost of the final state: a kernel (model, time, q, v) -> (), or a NumPy function of all rollouts,
                with time, q (…, nq) and v (…, nv).
            limits: Limits of the controls, ± or (lower, upper); by default, and at most, those of the actuators.
            method: "mppi" or `PathIntegral(temperature)`, "cross_entropy" or `CrossEntropy(elites)`, "best".
            plan: A `SplineOptions`: knots, spline.
            search: A `SearchOptions`: samples, noise, narrowest, iterations.
            **shortcuts: temperature, elites (method); knots, spline (plan); samples, noise, narrowest, iterations
                (search).
        """
        update, spline, search = _SHORTCUTS.fill(shortcuts, method=method, plan=plan, search=search)
        expect("sim", sim, Simulation, 'Simulation(load("cart_pole"))')
        if sim.ground.batch:
            raise SamplingError(
                f"the ground has batch axes {sim.ground.batch}; planning needs a single ground.", code="batch-mismatch"
            )
        if not sim.nu:
            raise SamplingError("the simulation has no controls to plan; add actuators.", code="nothing-to-do")
        for label, function in (("cost", cost), ("final cost", final)):
            if not callable(function) and not (function is None and label != "cost"):
                raise SamplingError(
                    f"the {label} is {function!r}; it must be a kernel, or a function of NumPy arrays.",
                    code="wrong-type",
                )
        self.horizon = check_integer("horizon", horizon, 1, MOST)
        self.samples, self.iterations = int(search.samples), int(search.iterations)
        self.knots = min(KNOTS, self.horizon) if spline.knots is None else int(spline.knots)
        self.narrowest, self.way = float(search.narrowest), update
        if self.knots > self.horizon:
            raise SamplingError(
                f"knots is {self.knots}, which is more than the horizon of {self.horizon} control periods; pass fewer "
                "knots.",
                code="out-of-range",
            )
        self.sim, self.cost, self.final, self.method, self.spline = sim, cost, final, update.name, spline.spline
        self.lower, self.upper = map(read_only, limits_of(sim, limits))
        self.noise = read_only(noise_of(sim, search.noise, self.lower, self.upper))
        self._stage = traced_cost(sim, "cost", cost, "(model, time, q, v, u)")
        self._final = traced_cost(sim, "final cost", final, "(model, time, q, v)")
        self._matrix = spline_matrix(self.spline, self.knots, self.horizon)
        self.freeze()

    def __repr__(self) -> str:
        return (
            f"Sampling({self.sim.model.name!r}: {self.samples} samples of {self.knots} knots, {self.method}, "
            f"{self.horizon} periods of {self.sim.period:g} s)"
        )

    @cached_property
    def _kernel(self) -> Kernel[..., Any]:
        return rollout_kernel(self._stage, self._final)

    @cached_property
    def _ahead(self) -> tuple[Horizon, Horizon, Horizon]:
        """The scenes for rollouts: with the reduced and with the full contact set, and for steps that these do not
        solve."""
        scenes = self.sim.reduced_scene, self.sim.scene, self.sim.fallback(self.sim.scene)
        reduced, full, rescue = (Horizon(scene, self.horizon) for scene in scenes)
        return reduced, full, rescue

    # --- plans ----------------------------------------------------------------------------------------------------

    def start(self, seed: int = 0, control: ArrayLike | None = None, *, time: float = 0.0) -> Plan:
        """An initial plan: a constant control (nu,), by default zero, and the seed of all random numbers."""
        u = np.zeros(self.sim.nu) if control is None else array_of_shape("control", control, (..., self.sim.nu))
        seed, time = check_integer("seed", seed, 0), number_in_range("time", time, FINITE)
        if u.shape != (self.sim.nu,) or not np.all(np.isfinite(u)):
            raise SamplingError(f"control is {u.tolist()}; it must be {self.sim.nu} finite numbers.", code="not-finite")
        knots = np.tile(np.clip(u, self.lower, self.upper), (self.knots, 1))
        return Plan(knots, self.controls(knots), time=time, seed=seed)

    def improve(self, plan: Plan, state: State) -> Plan:
        """Improve a plan for a state: it costs no more than the previous plan, shifted to the time of the state."""
        self._check_plan(plan)
        self._check(state)
        later = max(state.time - plan.time, 0.0) / self.sim.period
        before = shift_matrix(self.spline, self.knots, self.horizon, later) @ plan.knots if later else plan.knots
        best, least, first, failed = before, np.nan, np.nan, 0
        widest = np.broadcast_to(self.noise, before.shape)
        distribution = SamplingDistribution(before, widest)
        for k in range(self.iterations):
            samples = self._samples(distribution, (plan.seed, plan.count, k))
            costs = self.costs(state, self.controls(samples))
            first = costs[0] if k == 0 else first
            failed += int(np.sum(~np.isfinite(costs)))
            best, least = _cheaper(best, least, samples[0], costs[0])
            if not np.any(np.isfinite(costs)):
                break
            distribution = self._update_distribution(samples, costs, distribution, widest)
        else:  # the mean is not a sample: its cost is unknown
            best, least = _cheaper(best, least, distribution.mean, self.costs(state, self.controls(distribution.mean)))
        status = PlanStatus.IMPROVED if not least >= first else PlanStatus.KEPT
        status = PlanStatus.NO_COST if not np.isfinite(least) else status
        return Plan(best, self.controls(best), float(least), status, state.time, failed, plan.count + 1, plan.seed)

    def controls(self, knots: Array) -> Array:
        """The controls (…, horizon, nu) of knots (…, knots, nu), within the limits."""
        x = array_of_shape("knots", knots, (..., self.knots, self.sim.nu))
        controls: Array = np.clip(self._matrix @ x, self.lower, self.upper)
        return controls

    def _samples(self, distribution: SamplingDistribution, seed: tuple[int, ...]) -> Array:
        """(samples, knots, nu), the first of which is the mean."""
        noise = np.random.default_rng(seed).standard_normal((self.samples, *distribution.mean.shape))
        noise *= (self.narrowest ** np.linspace(0.0, 1.0, self.samples))[:, None, None]
        noise[0] = 0.0
        samples: Array = np.clip(distribution.mean + distribution.noise * noise, self.lower, self.upper)
        return samples

    def _update_distribution(
        self, samples: Array, costs: Array, distribution: SamplingDistribution, widest: Array
    ) -> SamplingDistribution:
        if isinstance(self.way, BestSample):
            return best(samples, costs, distribution)
        if isinstance(self.way, PathIntegral):
            return mppi(samples, costs, distribution, self.way.temperature)
        return cross_entropy(samples, costs, distribution, self.way.elites, widest)

    # --- rollouts -------------------------------------------------------------------------------------------------

    def costs(self, state: State, controls: ArrayLike) -> Array:
        """Costs of controls (…, horizon, nu) from a state; NaN where a rollout or a cost is NaN."""
        self._check(state)
        u = np.array(array_of_shape("controls", controls, (..., self.horizon, self.sim.nu)))
        rolled = self._roll_out(state, u)
        cost, time = rolled.cost, state.time + self.sim.period * np.arange(self.horizon)
        end = float(time[-1] + self.sim.period)  # before calling the cost, which may modify its arguments
        if self._stage is None:
            stages = call_cost("cost", self.cost, u.shape[:-1], time, rolled.path_q, rolled.path_v, u)
            cost = cost + self.sim.period * stages.sum(-1)
        if self.final is not None and self._final is None:
            cost = cost + call_cost("final cost", self.final, u.shape[:-2], end, rolled.q, rolled.v)
        return np.asarray(cost)

    def _roll_out(self, state: State, u: Array) -> RolloutResult:
        """Rollouts with the reduced contact set; those that need the full set, or another method, continue with it."""
        scene = self.sim.scene
        q, v = (np.where(is_alive(state.status)[..., None] > 0.5, x, np.nan) for x in (state.q, state.v))
        impulse, contact = state.rows, state.contact
        # Impulses from a simulation with other contacts cannot be used here.
        if impulse.shape[-1] != scene.m + scene.na + scene.tally_size or contact.shape[-1] != scene.slots:
            impulse, contact = np.zeros(scene.m + scene.na + scene.tally_size), np.arange(float(scene.slots))
        start = (q, v, pad_empty(impulse), pad_empty(contact), state.time, 0.0, 0.0)
        reduced, full, rescue = self._ahead
        attempts = (
            Attempt(lambda inputs, _: self._call_kernel(reduced, start, inputs["u"])),
            Attempt(partial(self._go_on, full), partial(_stops, Mark.NEEDS_FULL_SET), self._join),
            Attempt(partial(self._go_on, rescue), partial(_stops, Mark.NEEDS_ITERATIONS), self._join),
        )
        return RolloutResult(*retry(attempts, Batch(u.shape[:-2], {"u": u}, {"u": 2})))

    def _go_on(self, horizon_scene: Horizon, inputs: dict[str, Any], old: Results | None) -> tuple[Any, ...]:
        """Continue rollouts from the states in which they stopped."""
        return self._call_kernel(horizon_scene, (old or ())[:7], inputs["u"])

    def _join(self, old: Results, new: Results) -> Results:
        """Rollouts of two calls: the end of the second, and its path from the period where the first stopped."""
        remaining = np.arange(self.horizon)[:, None] >= old[6][..., None, None]
        return (*new[:8], *(np.where(remaining, b, a) for a, b in zip(old[8:], new[8:], strict=True)))

    def _call_kernel(self, horizon_scene: Horizon, start: tuple[Any, ...], u: Array) -> tuple[Any, ...]:
        sim = self.sim
        inputs = structures(sim.ground.inputs)
        results: tuple[Any, ...] = self._kernel(
            horizon_scene, *start, u, sim.time_step, **inputs, tolerance=sim.tolerance
        )
        return results

    def _check_plan(self, plan: Any) -> None:
        expect("the plan", plan, Plan, "planner.start(seed=0)")
        if plan.knots.shape != (self.knots, self.sim.nu):
            raise SamplingError(
                f"the plan belongs to another planner: its knots have shape {plan.knots.shape}, and those made here "
                f"{(self.knots, self.sim.nu)}.",
                code="other-system",
            )
        if not np.all(np.isfinite(plan.knots)):
            raise SamplingError("knots of the plan are not finite; start with planner.start().", code="not-finite")

    def _check(self, state: Any) -> None:
        expect("the state", state, State, "sim.start(q0)")
        model = self.sim.model
        if state.q.shape[-1:] != (model.nq,) or state.v.shape[-1:] != (model.nv,):
            raise SamplingError(
                f"the state belongs to another robot: q and v have shapes {state.q.shape} and {state.v.shape}, and "
                f"here they have {model.nq} and {model.nv} elements.",
                code="other-system",
            )
        if not np.all(np.isfinite(state.time)):
            raise SamplingError(f"the state's time is {state.time} s; it must be a finite number.", code="not-finite")
        if state.q.ndim != 1:
            raise SamplingError(
                f"the state has batch axes {state.q.shape[:-1]}; a plan is for one robot.", code="batch-mismatch"
            )


def _cheaper(a: Array, cost_a: Any, b: Array, cost_b: Any) -> tuple[Array, Any]:
    """The cheaper of two plans; costs that are not finite count as infinite."""
    return (b, cost_b) if np.isfinite(cost_b) and not cost_a <= cost_b else (a, cost_a)


def _stops(mark: Mark, results: Results) -> Any:
    """Whether rollouts stopped with a mark."""
    return results[7] == float(mark)
