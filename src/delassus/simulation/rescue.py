"""Robots that joints or loops hold in the ground, taken out of it as far as these let them move.

Levenberg and Marquardt's method for the least Σ depth², with motions measured by the mass matrix:

    δ = N Jᵀ (J N Jᵀ + λ)⁻¹ depth,   N = M⁻¹ - M⁻¹ Aᵀ (A M⁻¹ Aᵀ)⁺ A M⁻¹

for the derivative J of the gaps that are closed, and A of the loops. Where it ends in the ground, it is tried again
from places nearby: a pendulum that hangs straight down could go either way, and goes neither.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.constrained.projection.assemble import assemble
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import constraint_error
from delassus.dynamics.kinematics.manifold import integrate, parts
from delassus.dynamics.mass.crba import crba
from delassus.simulation.ground import Ground
from delassus.step.scene import Scene
from delassus.step.stages.kernels import candidate_geometry

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

_NEARBY: Final = 0.1
"""How far a robot's points are moved to start again, as a share of the depth."""

_LARGEST: Final = 0.3
"""Motion [rad, m] in a step."""

_DIFFERENCE: Final = 1e-6
"""Of a coordinate [rad, m], to find how gaps change with it."""

_LOCKED: Final = 1e12
"""How many times its inertia a joint has that would pass its limit."""


class Rescue:
    """Robots in the ground, (items, nq)."""

    def __init__(self, scene: Scene, ground: Ground, items: NDArray[np.bool_]) -> None:
        self.scene, self.model = scene, scene.model
        self.ground: dict[str, Any] = {}
        for name, x in ground.geometry.items():
            inner = np.shape(x)[-1:] if name == "normal" else ()
            shared = name == "heights" or np.shape(x) == inner
            self.ground[name] = x if shared else np.broadcast_to(x, (*items.shape, *inner))[items][:, None]
        singles = [(i, j) for motion, i, j in parts(self.model) if motion.nq == 1 and scene.max_limits]
        self.limited_q, self.limited_v = ([pair[k] for pair in singles] for k in range(2))

    def out(self, q: Array) -> Array:
        """Configurations (items, nq) with the least depths that are found."""
        best, rng = self._descended(q), np.random.default_rng(0)
        for _ in range(_TRIES):
            cost = self._cost(best)
            if not np.any(cost > DEEP**2):
                break
            again = self._descended(self._nearby(q, rng.normal(size=self.scene.nv)))
            best = np.where(((cost > DEEP**2) & (self._cost(again) < _WORTH * cost))[:, None], again, best)
        return best

    def _geometry(self, q: Array) -> tuple[Array, Array]:
        """Depths (items, n, candidates) in (items, n, nq), zero above the ground, and the points with an axis more."""
        gap, point, _ = candidate_geometry(self.scene, q, **self.ground)
        return np.maximum(-gap, 0.0), point

    def _cost(self, q: Array) -> Array:
        """Σ depth² (items,); infinite where loops are open."""
        cost: Array = np.sum(self._geometry(q[:, None])[0] ** 2, (-2, -1))
        if self.scene.mechanism.m:
            error = np.abs(constraint_error(self.scene.mechanism, q, time=0.0)).max(-1)
            cost = np.where(error < OPEN, cost, np.inf)
        return cost

    def _nearby(self, q: Array, way: Array) -> Array:
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
        return assemble(self.scene.mechanism, moved, time=0.0).q if self.scene.mechanism.m else moved

    def _descended(self, q: Array) -> Array:
        """Where the method ends."""
        damping, cost = np.full(len(q), 1e-3), self._cost(q)
        for _ in range(_STEPS):
            deep = (cost > _NONE**2) & (damping < 1e6)
            if not deep.any():
                break
            trial = self._allowed(q, self._bounded(q, self._step(q, damping), 1.0))
            found = self._cost(trial)
            better = deep & (found < (1.0 - _PROGRESS) * cost)
            damping = np.maximum(np.where(better, 0.1 * damping, 10.0 * damping), 1e-9)
            q, cost = np.where(better[:, None], trial, q), np.where(better, found, cost)
        return q

    def _step(self, q: Array, damping: Array) -> Array:
        """δ (items, nv); joints that would pass their limits are locked."""
        ways = _DIFFERENCE * np.eye(self.scene.nv)
        ahead, behind = (self._geometry(integrate(self.model, q[:, None], s * ways))[0] for s in (1.0, -1.0))
        depth = self._geometry(q[:, None])[0][:, 0]
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
            A = constraint_jacobian(self.scene.mechanism, q, time=0.0)
            held = np.linalg.pinv(A @ N @ A.mT, rtol=1e-9, hermitian=True)
            N = N - N @ A.mT @ held @ A @ N
        G = J @ N @ J.mT
        mean = np.trace(G, axis1=1, axis2=2) + 1e-300
        own = (damping * mean)[:, None, None] * np.eye(G.shape[-1])
        step: Array = (N @ J.mT @ np.linalg.solve(G + own, depth[..., None]))[..., 0]
        return step
