"""A file simulated here and in MuJoCo: where the motions part, and which ingredient differs.

Motions of two engines part after a contact for many reasons. So each ingredient of the equation of motion is compared
at the same states, those of MuJoCo's rollout: mass matrix, bias, passive and actuator forces, contacts, equality
constraints. What differs there is why motions part. If nothing does, it is the integrator, whose servos are implicit
here, or the law of contact, which is rigid here and soft in MuJoCo.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import Range, number_in_range, positive_number
from delassus.constrained.rows.references import constraint_error
from delassus.dynamics.forces.passive import passive_forces
from delassus.dynamics.forces.rnea import rnea
from delassus.dynamics.mass.crba import crba
from delassus.errors import BadArgument
from delassus.model.converters.mujoco import a_from_mujoco, q_from_mujoco, q_to_mujoco, v_from_mujoco, v_to_mujoco
from delassus.model.model import Model
from delassus.model.readers.mjcf_names import read_names
from delassus.simulation.scenery import ground_plane
from delassus.simulation.simulation import Simulation
from delassus.step.actuators.actuator_forces import actuator_forces

Array = NDArray[np.float64]

_STATES: Final = 20
"""Of MuJoCo's rollout, at which ingredients are compared."""

_EQUAL: Final = 1e-9
"""Ingredients whose relative difference is smaller agree."""

_PARTED: Final = 1e-3
"""Coordinates [rad, m] that differ by more have parted."""

_TOUCHING: Final = 1e-6
"""Gaps [m] below are contacts."""

_NOISES: Final = Range(0.0, 1.0, "from 0 to 1, a share of the range of the controls")


@dataclass(frozen=True)
class Ingredient:
    """Something that both compute at the same states: the largest difference, relative to its scale, and a remark."""

    name: str
    difference: float
    remark: str = ""

    @property
    def agrees(self) -> bool:
        """Whether it differs by rounding alone."""
        return self.difference < _EQUAL


@dataclass(frozen=True)
class Comparison:
    """Two rollouts of a file.

    Attributes:
        time: (n,) [s].
        ours: (n, nq) configurations here, in MuJoCo's layout.
        theirs: (n, nq) configurations in MuJoCo.
        parted_at: When a coordinate first differs by more than 1e-3 [s]; None if none does.
        parted_joint: Whose coordinate that is.
        ingredients: What was compared at MuJoCo's states.
        omissions: What the file has and the model has not.
    """

    time: Array
    ours: Array
    theirs: Array
    parted_at: float | None
    parted_joint: str
    ingredients: tuple[Ingredient, ...]
    omissions: tuple[str, ...]


def compare_with_mujoco(
    source: str | os.PathLike[str], seconds: float = 1.0, noise: float = 0.0, seed: int = 0
) -> Comparison:
    """Roll out an MJCF file here and in MuJoCo, from its first keyframe with its control, and compare.

    Args:
        source: The path of the file.
        seconds: How long [s].
        noise: Random changes of the controls every 0.05 s, as a share of their range (of 1 without a range).
        seed: Of the noise.
    """
    seconds, noise = positive_number("seconds", seconds), number_in_range("noise", noise, _NOISES)
    mujoco = importlib.import_module("mujoco")
    sim = Simulation.from_file(source)
    if not sim.model.describes_world:
        raise BadArgument(f"{os.fspath(source)!r} is not MJCF, which MuJoCo reads too.", code="not-supported")
    mj = mujoco.MjModel.from_xml_path(os.fspath(source))
    steps = max(round(seconds / sim.time_step), 1)
    control = _controls(mj, sim, steps, noise, seed)
    log = sim.run(sim.start(), control=control, steps=steps)
    data, positions, states = mujoco.MjData(mj), [], []
    if mj.nkey:
        mujoco.mj_resetDataKeyframe(mj, data, 0)
    positions.append(data.qpos.copy())
    for k in range(steps):
        data.ctrl[mj.actuator_ctrladr] = control[k]
        if k % max(steps // _STATES, 1) == 0:
            states.append((data.qpos.copy(), data.qvel.copy(), data.act.copy(), data.ctrl.copy()))
        mujoco.mj_step(mj, data)
        positions.append(data.qpos.copy())
    ours, theirs = q_to_mujoco(sim.model, log.q), np.stack(positions)
    apart = np.abs(ours - theirs)
    first = next((k for k in range(len(apart)) if not apart[k].max() < _PARTED), None)
    return Comparison(
        np.asarray(log.time),
        ours,
        theirs,
        None if first is None else float(log.time[first] - log.time[0]),
        "" if first is None else _joint_of(sim.model, int(np.argmax(apart[first]))),
        tuple(_ingredients(mujoco, mj, sim, states)),
        sim.model.omissions,
    )


def _controls(mj: Any, sim: Simulation, steps: int, noise: float, seed: int) -> Array:
    """(steps, nu) the control of the keyframe, and noise that changes every 0.05 s."""
    width = [a.control_range[1] - a.control_range[0] if a.control_range else 1.0 for a in sim.model.actuators]
    held = max(round(0.05 / sim.time_step), 1)
    draws = np.random.default_rng(seed).uniform(-1.0, 1.0, (steps // held + 1, sim.nu))
    size = np.array(width) if width else np.zeros(sim.nu)
    return sim.keyframe.control + noise * size * draws.repeat(held, axis=0)[:steps]


def _joint_of(model: Model, coordinate: int) -> str:
    starts = [start for start in model.q_starts if start <= coordinate]
    return model.joints[len(starts) - 1].name


def _ingredients(mujoco: Any, mj: Any, sim: Simulation, states: list[Any]) -> Iterator[Ingredient]:
    """Each of them, at all states."""
    model, data = sim.model, mujoco.MjData(mj)
    worst: dict[str, float] = {}
    depth = 0.0
    pairs: list[tuple[set[frozenset[str]], set[frozenset[str]]]] = []

    def note(name: str, found: Any, expected: Any) -> None:
        scale = 1.0 + np.abs(expected).max(initial=0.0)
        difference = np.abs(np.asarray(found) - expected).max(initial=0.0) / scale
        worst[name] = max(worst.get(name, 0.0), float(difference))

    for qpos, qvel, act, ctrl in states:
        data.qpos, data.qvel, data.act, data.ctrl = qpos, qvel, act, ctrl
        mujoco.mj_forward(mj, data)
        q = q_from_mujoco(model, qpos)
        v = v_from_mujoco(model, q, qvel)
        T = v_to_mujoco(model, q, np.eye(model.nv)).T  # qvel = T v, T a rotation
        M = np.zeros((mj.nv, mj.nv))
        for k, column in enumerate(np.eye(mj.nv)):
            mujoco.mj_mulM(mj, data, M[k], column)
        still = a_from_mujoco(model, q, v, np.zeros(model.nv))
        note("mass matrix", T @ crba.python(model, q) @ T.T, M)
        note("bias", T @ rnea.python(model, q, v, still), data.qfrc_bias)
        note("passive forces", T @ passive_forces.python(model, q, v), data.qfrc_passive)
        if model.actuators:
            signal = ctrl[mj.actuator_ctrladr]
            stateful = np.flatnonzero(mj.actuator_actadr >= 0)
            signal[stateful] = act[mj.actuator_actadr[stateful]]
            note("actuators", T @ actuator_forces.python(model, q, v, signal), data.qfrc_actuator)
        if sim.mechanism.m:
            rows = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
            error = constraint_error.python(sim.mechanism, q)
            note("equality constraints", np.linalg.norm(error), np.linalg.norm(data.efc_pos[rows]))
        depth = max(depth, -min((contact.dist for contact in data.contact), default=0.0))
        pairs.append((_our_pairs(sim, q), _their_pairs(mj, data)))
    yield from (Ingredient(name, difference) for name, difference in worst.items())
    missing = sorted({" and ".join(sorted(p)) for ours, theirs in pairs for p in theirs - ours})
    shown = f"not found here: {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}" if missing else ""
    yield Ingredient("contact pairs", float(len(missing)), shown)
    if depth:
        yield Ingredient("law of contact", depth, f"rigid here, soft in MuJoCo: up to {1e3 * depth:.3g} mm deep")
    method = mujoco.mjtIntegrator(int(mj.opt.integrator)).name.removeprefix("mjINT_").lower()
    yield Ingredient("integrator", float(sim.time_step), f"servos and springs implicit here, {method!r} in MuJoCo")


def _our_pairs(sim: Simulation, q: Array) -> set[frozenset[str]]:
    """Names of shapes that touch here, the plane of the file among them."""
    if not sim.scene.candidates:
        return set()
    gap = sim.contacts(q).gap
    plane = ground_plane(sim.model)
    floor = plane.name if plane else "ground"
    touching = [sim.scene.candidate_shapes[k] for k in np.flatnonzero(gap < _TOUCHING)]
    return {
        frozenset((one.geometry.name, floor if other is None else other.geometry.name)) for one, other, _ in touching
    }


def _their_pairs(mj: Any, data: Any) -> set[frozenset[str]]:
    """Names of shapes that touch in MuJoCo."""
    names = read_names(mj).geoms
    return {frozenset(names[g] for g in contact.geom) for contact in data.contact if contact.dist < 0.0}


def plot_comparison(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Draw how far the coordinates of both motions are apart, over time."""
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(7.0, 3.5))
    axes.semilogy(comparison.time, np.abs(comparison.ours - comparison.theirs).max(1) + 1e-17)
    axes.set(xlabel="time [s]", ylabel="largest difference [rad, m]")
    figure.savefig(path, bbox_inches="tight")
    pyplot.close(figure)
