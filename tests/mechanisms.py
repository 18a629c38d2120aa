"""Mechanisms for the tests of constraints, and the dense answer of constrained dynamics by singular values.

The dense system is built from kinematics and dynamics that are tested on their own, nothing of `constrained`: Jacobians
and accelerations of frames. The answer is the one that means the same whatever the rank: of the accelerations that meet
the rows in the least-squares sense, the nearest to the free motion in the metric of M; of its forces, the smallest.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

import delassus as dl
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constraints.kinds.joint_lock import JointLock
from delassus.constraints.kinds.weld import Weld
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.parts import Frame, Joint
from joint_cases import mechanisms as any_joints
from robots import file

PROXIMAL = (dl.caba, dl.prox_pv, dl.prox_ltl, dl.prox_ltls)
FOUR_BAR = dl.Mechanism(dl.load("four_bar"))
CORNERS = [dl.Placement.of(p=(x, y, -0.02)) for x in (0.1, -0.1) for y in (0.05, -0.05)]


@dataclass
class Dense:
    """M a = h + Jᵀ λ, J a + γ = 0 of a mechanism in a state."""

    M: Any
    h: Any
    J: Any
    gamma: Any
    weight: Any = 1.0
    """The weight of each row: its residual counts by the square of it, its force by the inverse square."""

    @cached_property
    def spectrum(self):
        """Singular values of J M⁻¹ Jᵀ, as shares of the largest."""
        s = np.linalg.svd(self.whitened, compute_uv=False) ** 2
        return s / max(s.max(), 1e-300)

    @cached_property
    def scale(self) -> float:
        """The largest singular value of J M⁻¹ Jᵀ."""
        return float(np.linalg.norm(self.whitened, 2) ** 2)

    @cached_property
    def whitened(self):
        """J L⁻ᵀ for M = L Lᵀ, so that J M⁻¹ Jᵀ is its square."""
        return np.linalg.solve(np.linalg.cholesky(self.M), self.J.T).T

    @cached_property
    def answer(self):
        """Accelerations and the smallest forces."""
        L, B = np.linalg.cholesky(self.M), (self.whitened.T * self.weight).T
        free = np.linalg.solve(L, self.h)
        y = free - np.linalg.pinv(B, rcond=1e-6) @ (self.weight * self.gamma + B @ free)
        return np.linalg.solve(L.T, y), self.weight * (np.linalg.pinv(B.T, rcond=1e-6) @ (y - free))

    @cached_property
    def slowest(self) -> float:
        """The smallest singular value that is not zero, as a share of the largest."""
        return min(s for s in self.spectrum if s > 1e-13)

    @cached_property
    def proximal(self) -> float:
        """ε somewhat below the smallest singular value, and at least 1e-5 of the largest, since less costs digits."""
        return self.scale * max(1e-5, 0.03 * self.slowest)

    @cached_property
    def iterations(self) -> int:
        """Iterations after which the slowest direction is met to 1e-13; each one contracts it by ε/(ε + σ)."""
        return 3 + math.ceil(math.log(1e-13) / math.log(self.proximal / (self.proximal + self.scale * self.slowest)))

    def is_clear(self) -> bool:
        """Whether the rank is beyond doubt: singular values are either below 1e-13 or above 1e-6 of the largest.

        It is in doubt where rows move by nothing but rounding, which the largest does not show.
        """
        s, most = self.spectrum, np.max(np.abs(self.J), initial=0.0)
        return bool(np.all((s < 1e-13) | (s > 1e-6))) and not 0.0 < most < 1e-12


def weighted(mechanism: dl.Mechanism, system: Dense) -> Dense:
    """The system with the norm that solvers take where none is given: rows weighted by what they yield."""
    return replace(system, weight=1.0 / np.sqrt(row_mobilities(mechanism)))


def dense(mechanism: dl.Mechanism, q, v, tau) -> Dense:
    """The dense system, from frames' Jacobians and accelerations."""
    model = mechanism.model
    rows, bias = [], []
    for c in mechanism.constraints:
        if isinstance(c, JointLock):
            J = np.eye(model.nv)[list(c.velocities(model))]
            moving, error = np.zeros(len(J)), None
        else:
            placed = model.with_frame("the constraint's", c.frame, c.placement)
            at = {"frame": "the constraint's"}
            chosen = list(c.rows)
            J = dl.frame_jacobian.python(placed, q, **at)[chosen]
            point = not isinstance(c, Weld)
            moving = dl.frame_acceleration.python(placed, q, v, np.zeros(model.nv), classical=point, **at)[chosen]
            error = None
            if getattr(c, "position", None) is not None:
                R, p = dl.frame_placement.python(placed, q, **at)
                error = (R.T @ (p - np.array(c.position)))[chosen]
        n = len(J)
        wanted = c.per_row("acceleration", n) - c.per_row("velocity_gain", n) * (J @ v)
        if error is not None:
            wanted = wanted - c.per_row("position_gain", n) * error
        rows.append(J)
        bias.append(moving - wanted)
    h = tau - dl.bias_torques.python(model, q, v)
    return Dense(dl.crba.python(model, q), h, np.concatenate(rows), np.concatenate(bias))


def robot(name: str, root: str = "free") -> Model:
    """A robot of example-robot-data, mimicry ignored."""
    return dl.load(file(name), root=root, mimic="ignore")


def state(model: Model, seed: int = 0, speed: float = 1.0):
    """A random configuration, velocity and torques."""
    rng = np.random.default_rng(seed)
    q = model.random_configuration(rng)
    return q, speed * rng.normal(size=model.nv), rng.normal(size=model.nv)


@st.composite
def held(draw):
    """A tree of joints of any kinds with up to four constraints, often redundant; and a state of it."""
    case = draw(any_joints())
    model = case.model
    constraints: list[Any] = []
    for _ in range(draw(st.integers(1, 4))):
        k, kind = draw(st.integers(0, len(model.joints) - 1)), draw(st.sampled_from(["point", "weld", "lock"]))
        if kind == "lock":
            constraints.append(dl.JointLock(model.joints[k].name, acceleration=0.7))
            continue
        make, most = (dl.Point, 3) if kind == "point" else (dl.Weld, 6)
        rows = draw(st.lists(st.integers(0, most - 1), min_size=1, max_size=most, unique=True))
        constraints.append(make(f"frame {k}", rows=rows, acceleration=-0.3))
    return dl.Mechanism(model, constraints), case.q, case.v, case.a


def relative(found, expected) -> float:
    """The largest error as a share of the largest number, or of 1 where all are smaller."""
    return float(np.max(np.abs(found - expected)) / max(1.0, np.max(np.abs(expected))))


def loop(name: str) -> dl.Mechanism:
    """A robot of the package with its closed loops."""
    return dl.Mechanism(dl.load(name))


def short_four_bar() -> dl.Mechanism:
    """A four-bar whose coupler is 0.3 m and whose rocker is 0.25 m too short: they end 0.15 m apart."""
    ends = [dl.Placement.of(p=(-x, 0.0, 0.0)) for x in (0.3, 0.25)]
    closure = dl.Point("coupler_end", "rocker_end", placement=ends[0], placement2=ends[1], name="closure")
    return dl.Mechanism(replace(FOUR_BAR.model, constraints=()), closure)


def two_bodies(*masses: float) -> Model:
    """Two free bodies with frames "a" and "b" in their centres of mass."""
    bodies = [Joint(f"{k}", Free(), inertia=dl.Inertia.of(m, (0, 0, 0), m * np.eye(3))) for k, m in enumerate(masses)]
    return Model("two bodies", tuple(bodies), (Frame("a", 0), Frame("b", 1)))
