"""Robots that joints or loops hold in the ground, taken out of it as far as these let them move.

Levenberg and Marquardt's method for the least Σ depth², with motions measured by the mass matrix:

    δ = N Jᵀ (J N Jᵀ + λ)⁻¹ depth,   N = M⁻¹ - M⁻¹ Aᵀ (A M⁻¹ Aᵀ)⁺ A M⁻¹

for the derivative J of the gaps that are closed, and A of the loops. Where it ends in the ground, it is tried again
from places nearby: a pendulum that hangs straight down could go either way, and goes neither.
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
"""Errors of constraints [m, rad] beyond count as open loops."""

DEEP: Final = 1e-3
"""Penetrations [m] beyond are deep."""

_NONE: Final = 1e-9
"""Depths [m] below are none."""

_PROGRESS: Final = 1e-6
_WORTH: Final = 0.99
"""Shares of Σ depth²: what a step takes at least, and what is left at most where it is worth to start elsewhere."""

_STEPS: Final = 60
_TRIES: Final = 4

_CORES: Final = {"normal": 1, "height": 0}
"""Axes that inputs of the ground have for one item; others are the same for all."""

_NEARBY: Final = 0.1
"""How far a robot's points are moved to start again, as a share of the depth."""

_LARGEST: Final = 0.3
"""Motion [rad, m] in a step."""

_DIFFERENCE: Final = 1e-6
"""Of a coordinate [rad, m], to find how gaps change with it."""

_LOCKED: Final = 1e12
"""How many times its inertia a joint has that would pass its limit."""


def take_out(scene: Scene, ground: Ground, items: NDArray[np.bool_], q: Array, time: float) -> Array:
    """Configurations (items, nq) of some items of a batch (…, nq) at a time [s], with the least depths found."""
    cores = {name: _CORES.get(name, np.ndim(x)) for name, x in ground.geometry.items()}
    places = Batch(items.shape, ground.geometry, cores).select(items)
    batch = Batch(q[items].shape[:1], {"q": q[items], **places}, {"q": 1, **cores})
    rng = np.random.default_rng(0)

    def descend(way: Array | None, inputs: dict[str, Any], previous: Results | None) -> tuple[Array, Array]:
        """Descend from where the robots are, or from nearby in a direction (nv,): q and cost of where that ends."""
        start, robots = inputs.pop("q"), Rescue(scene, inputs, time)
        end = robots.descend(start if way is None else robots.nearby(start, way))
        return end, robots.cost(end)

    again = [Attempt(partial(descend, rng.normal(size=scene.nv)), _is_deep, _keep_better) for _ in range(_TRIES)]
    return retry([Attempt(partial(descend, None)), *again], batch)[0]


def _is_deep(results: Results) -> Any:
    return results[1] > DEEP**2


def _keep_better(old: Results, new: Results) -> Results:
    return select_where(new[1] < _WORTH * old[1], new, old)


class Rescue:
    """Robots in the ground at a time, (items, nq); what each has of the ground, or all, by the names of the kernel."""

    def __init__(self, scene: Scene, ground: dict[str, Any], time: float) -> None:
        self.scene, self.model, self.time = scene, scene.model, time
        same = {name for name, x in ground.items() if np.ndim(x) == _CORES.get(name, np.ndim(x))}
        self.ground = GroundShape(**{name: x if name in same else x[:, None] for name, x in ground.items()})
        singles = [(i, j) for motion, i, j in parts(self.model) if motion.nq == 1 and scene.max_limits]
        self.limited_q, self.limited_v = ([pair[k] for pair in singles] for k in range(2))

    def _geometry(self, q: Array) -> tuple[Array, Array]:
        """Depths (items, n, candidates) in (items, n, nq), zero above the ground, and the points with an axis more."""
        gap, point, _ = geometry_kernel(self.scene)(self.scene, q, ground=self.ground)
        return np.maximum(-gap, 0.0), point

    def cost(self, q: Array) -> Array:
        """Σ depth² (items,); infinite where loops are open."""
        cost: Array = np.sum(self._geometry(q[:, None])[0] ** 2, (-2, -1))
        if self.scene.mechanism.m:
            error = np.abs(constraint_error(self.scene.mechanism, q, time=self.time)).max(-1)
            cost = np.where(error < OPEN, cost, np.inf)
        return cost

    def nearby(self, q: Array, way: Array) -> Array:
        """Another configuration of each item, in a direction (nv,) that is the same for all."""
        way = way / np.sqrt(np.diagonal(crba(self.model, q), axis1=-2, axis2=-1))
        return self._allowed(q, self._bounded(q, 1e3 * way / np.abs(way).max(-1, keepdims=True), _NEARBY))

    def _bounded(self, q: Array, step: Array, share: float) -> Array:
        """A motion (items, nv) that moves the robot's points by no more than a share of the depth."""
        size = np.abs(step).max(-1, keepdims=True) + 1e-300
        depth, point = self._geometry(np.stack([q, integrate(self.model, q, _DIFFERENCE / size * step)], 1))
        moved = np.linalg.norm(point[:, 1] - point[:, 0], axis=-1).max(-1) / _DIFFERENCE
        longest = np.minimum(share * depth[:, 0].max(-1) / np.maximum(moved, 1e-9), _LARGEST)
        return step / size * np.minimum(size, longest[:, None])

    def _allowed(self, q: Array, step: Array) -> Array:
        """Configurations after a motion (items, nv), within joint limits and with loops closed."""
        own, moved = self.limited_q, np.array(integrate(self.model, q, step))
        within = np.clip(moved[:, own], self.model.lower[own], self.model.upper[own])
        beyond = (q[:, own] < self.model.lower[own]) | (q[:, own] > self.model.upper[own])
        moved[:, own] = np.where(beyond, moved[:, own], within)  # what starts beyond is for the steps to take back
        return assemble(self.scene.mechanism, moved, time=self.time).q if self.scene.mechanism.m else moved

    def descend(self, q: Array) -> Array:
        """Where the method ends."""
        damping, cost = np.full(len(q), 1e-3), self.cost(q)
        for _ in range(_STEPS):
            deep = (cost > _NONE**2) & (damping < 1e6)
            if not deep.any():
                break
            trial = self._allowed(q, self._bounded(q, self._step(q, damping), 1.0))
            found = self.cost(trial)
            better = deep & (found < (1.0 - _PROGRESS) * cost)
            damping = np.maximum(np.where(better, 0.1 * damping, 10.0 * damping), 1e-9)
            q, cost = np.where(better[:, None], trial, q), np.where(better, found, cost)
        return q

    def _step(self, q: Array, damping: Array) -> Array:
        """δ (items, nv); joints that would pass their limits are locked."""
        ways = _DIFFERENCE * np.eye(self.scene.nv)
        ahead, behind = (self._geometry(integrate(self.model, q[:, None], s * ways))[0] for s in (1.0, -1.0))
        depth = self._geometry(q[:, None])[0][:, 0]
        some = np.flatnonzero((depth > 0.0).any(0))  # of thousands of candidates
        ahead, behind, depth = ahead[..., some], behind[..., some], depth[:, some]
        J = np.swapaxes(behind - ahead, 1, 2) / (2.0 * _DIFFERENCE) * (depth > 0.0)[..., None]
        M = np.array(crba(self.model, q))
        step = self._way(q, J, depth, M, damping)
        own, at = self.limited_q, self.limited_v
        ends = q[:, own] + step[:, at]
        passed = (ends < self.model.lower[own]) | (ends > self.model.upper[own])
        if not passed.any():
            return step
        M[:, at, at] *= np.where(passed, _LOCKED, 1.0)
        return self._way(q, J, depth, M, damping)

    def _way(self, q: Array, J: Array, depth: Array, M: Array, damping: Array) -> Array:
        N = np.linalg.inv(M)
        if self.scene.mechanism.m:
            A = constraint_jacobian(self.scene.mechanism, q, time=self.time)
            held = np.linalg.pinv(A @ N @ A.mT, rtol=1e-9, hermitian=True)
            N = N - N @ A.mT @ held @ A @ N
        G = J @ N @ J.mT
        mean = np.trace(G, axis1=1, axis2=2) + 1e-300
        own = (damping * mean)[:, None, None] * np.eye(G.shape[-1])
        step: Array = (N @ J.mT @ np.linalg.solve(G + own, depth[..., None]))[..., 0]
        return step
