"""Move robots without a free base out of the ground, as far as joints and loops allow.

Minimizes Σ depth² by the Levenberg–Marquardt method, with motions measured by the mass matrix:

    δ = N Jᵀ (J N Jᵀ + λ)⁻¹ depth,   N = M⁻¹ - M⁻¹ Aᵀ (A M⁻¹ Aᵀ)⁺ A M⁻¹

J is the derivative of the negative gaps and A that of the loop closures. If the method ends in the ground, it is
repeated from random configurations nearby: a pendulum that hangs straight down is at a saddle point.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.host.retry import Attempt, Batch, Results, retry, select_where
from delassus.constrained.projection.assemble import assemble
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import constraint_error
from delassus.dynamics.kinematics.manifold import integrate, parts
from delassus.dynamics.mass.crba import crba
from delassus.simulation.ground import Ground
from delassus.step.bodies.kernels import geometry_kernel
from delassus.step.scene import Scene
from delassus.step.stages.types import GroundShape

Array = NDArray[np.float64]

OPEN: Final = 1e-6
"""Error of a loop [m, rad] above which it counts as open."""

DEEP: Final = 1e-3
"""Penetrations [m] beyond this depth are repaired."""

_NONE: Final = 1e-9
"""Depth [m] at which the descent ends."""

_PROGRESS: Final = 1e-6
_WORTH: Final = 0.99
"""Largest ratio of Σ depth² after and before, for a step or another start to be accepted."""

_STEPS: Final = 60
_TRIES: Final = 4

_CORES: Final = {"normal": 1, "height": 0}
"""Number of axes, for one environment, of the inputs of the ground that may differ between environments."""

_NEARBY: Final = 0.1
"""Motion of a robot's points to another start, as a fraction of the depth."""

_LARGEST: Final = 0.3
"""Largest motion [rad, m] in a step."""

_DIFFERENCE: Final = 1e-6
"""Step of a coordinate [rad, m] for finite differences of the gaps."""

_LOCKED: Final = 1e12
"""Factor on the inertia of a joint that would pass its limit, which locks it."""


def move_out_of_ground(scene: Scene, ground: Ground, items: NDArray[np.bool_], q: Array, time: float) -> Array:
    """Configurations (n, nq) with the smallest depths, for n selected environments of a batch (…, nq) at a time [s]."""
    cores = {name: _CORES.get(name, np.ndim(x)) for name, x in ground.geometry.items()}
    places = Batch(items.shape, ground.geometry, cores).select(items)
    batch = Batch(q[items].shape[:1], {"q": q[items], **places}, {"q": 1, **cores})
    rng = np.random.default_rng(0)

    def descend(direction: Array | None, inputs: dict[str, Any], previous: Results | None) -> tuple[Array, Array]:
        """Descend from the start, or from a configuration nearby in a direction (nv,); return q and cost."""
        start, robots = inputs.pop("q"), PenetratingRobots(scene, inputs, time)
        end = robots.descend(start if direction is None else robots.nearby(start, direction))
        return end, robots.cost(end)

    again = [Attempt(partial(descend, rng.normal(size=scene.nv)), _is_deep, _keep_better) for _ in range(_TRIES)]
    return retry([Attempt(partial(descend, None)), *again], batch)[0]


def _is_deep(results: Results) -> Any:
    return results[1] > DEEP**2


def _keep_better(old: Results, new: Results) -> Results:
    return select_where(new[1] < _WORTH * old[1], new, old)


class PenetratingRobots:
    """Robots (n, nq) that penetrate the ground; `ground` has inputs of the kernel, for each robot or common to all."""

    def __init__(self, scene: Scene, ground: dict[str, Any], time: float) -> None:
        self.scene, self.model, self.time = scene, scene.model, time
        same = {name for name, x in ground.items() if np.ndim(x) == _CORES.get(name, np.ndim(x))}
        self.ground = GroundShape(**{name: x if name in same else x[:, None] for name, x in ground.items()})
        singles = [(i, j) for motion, i, j in parts(self.model) if motion.nq == 1 and scene.max_limits]
        self.limited_q, self.limited_v = ([pair[k] for pair in singles] for k in range(2))

    def _geometry(self, q: Array) -> tuple[Array, Array]:
        """Depths (items, n, candidates) of q (items, n, nq), zero above the ground, and points (…, candidates, 3)."""
        gap, point, _ = geometry_kernel(self.scene)(self.scene, q, ground=self.ground)
        return np.maximum(-gap, 0.0), point

    def cost(self, q: Array) -> Array:
        """Σ depth² (items,); infinite if loops are open."""
        cost: Array = np.sum(self._geometry(q[:, None])[0] ** 2, (-2, -1))
        if self.scene.mechanism.m:
            error = np.abs(constraint_error(self.scene.mechanism, q, time=self.time)).max(-1)
            cost = np.where(error < OPEN, cost, np.inf)
        return cost

    def nearby(self, q: Array, direction: Array) -> Array:
        """A configuration near each q, in a direction (nv,) that is the same for all."""
        scaled = direction / np.sqrt(np.diagonal(crba(self.model, q), axis1=-2, axis2=-1))
        return self._allowed(q, self._bounded(q, 1e3 * scaled / np.abs(scaled).max(-1, keepdims=True), _NEARBY))

    def _bounded(self, q: Array, step: Array, fraction: float) -> Array:
        """Shorten a motion (items, nv) so that it moves the robot's points by at most a fraction of the depth."""
        size = np.abs(step).max(-1, keepdims=True) + 1e-300
        depth, point = self._geometry(np.stack([q, integrate(self.model, q, _DIFFERENCE / size * step)], 1))
        speed = np.linalg.norm(point[:, 1] - point[:, 0], axis=-1).max(-1) / _DIFFERENCE
        longest = np.minimum(fraction * depth[:, 0].max(-1) / np.maximum(speed, 1e-9), _LARGEST)
        return step / size * np.minimum(size, longest[:, None])

    def _allowed(self, q: Array, step: Array) -> Array:
        """Configurations after a motion (items, nv), within joint limits and with closed loops."""
        k, trial = self.limited_q, np.array(integrate(self.model, q, step))
        within = np.clip(trial[:, k], self.model.lower[k], self.model.upper[k])
        beyond = (q[:, k] < self.model.lower[k]) | (q[:, k] > self.model.upper[k])
        # The steps move joints that start beyond their limits back.
        trial[:, k] = np.where(beyond, trial[:, k], within)
        return assemble(self.scene.mechanism, trial, time=self.time).q if self.scene.mechanism.m else trial

    def descend(self, q: Array) -> Array:
        """The configurations at which the method ends."""
        damping, cost = np.full(len(q), 1e-3), self.cost(q)
        for _ in range(_STEPS):
            deep = (cost > _NONE**2) & (damping < 1e6)
            if not deep.any():
                break
            trial = self._allowed(q, self._bounded(q, self._step(q, damping), 1.0))
            trial_cost = self.cost(trial)
            better = deep & (trial_cost < (1.0 - _PROGRESS) * cost)
            damping = np.maximum(np.where(better, 0.1 * damping, 10.0 * damping), 1e-9)
            q, cost = np.where(better[:, None], trial, q), np.where(better, trial_cost, cost)
        return q

    def _step(self, q: Array, damping: Array) -> Array:
        """δ (items, nv); joints that would pass their limits are locked."""
        steps = _DIFFERENCE * np.eye(self.scene.nv)
        ahead, behind = (self._geometry(integrate(self.model, q[:, None], s * steps))[0] for s in (1.0, -1.0))
        depth = self._geometry(q[:, None])[0][:, 0]
        closed = np.flatnonzero((depth > 0.0).any(0))  # a few of thousands of candidates
        ahead, behind, depth = ahead[..., closed], behind[..., closed], depth[:, closed]
        J = np.swapaxes(behind - ahead, 1, 2) / (2.0 * _DIFFERENCE) * (depth > 0.0)[..., None]
        M = np.array(crba(self.model, q))
        step = self._damped_step(q, J, depth, M, damping)
        k, at = self.limited_q, self.limited_v
        ends = q[:, k] + step[:, at]
        passed = (ends < self.model.lower[k]) | (ends > self.model.upper[k])
        if not passed.any():
            return step
        M[:, at, at] *= np.where(passed, _LOCKED, 1.0)
        return self._damped_step(q, J, depth, M, damping)

    def _damped_step(self, q: Array, J: Array, depth: Array, M: Array, damping: Array) -> Array:
        N = np.linalg.inv(M)
        if self.scene.mechanism.m:
            A = constraint_jacobian(self.scene.mechanism, q, time=self.time)
            inertia = np.linalg.pinv(A @ N @ A.mT, rtol=1e-9, hermitian=True)
            N = N - N @ A.mT @ inertia @ A @ N
        G = J @ N @ J.mT
        mean = np.trace(G, axis1=1, axis2=2) + 1e-300
        regularization = (damping * mean)[:, None, None] * np.eye(G.shape[-1])
        step: Array = (N @ J.mT @ np.linalg.solve(G + regularization, depth[..., None]))[..., 0]
        return step
