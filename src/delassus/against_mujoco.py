"""Simulates a file here and in MuJoCo, finds when the trajectories separate, and names the option that explains it.

Motions of two engines part after a contact for many reasons. So each ingredient of the equation of motion is compared
at the same states, those of MuJoCo's rollout: mass matrix, bias, passive and actuator forces, contacts, equality
constraints. What differs there is why motions part. If nothing does, it is the integrator, whose servos are implicit
here, or the law of contact, which is rigid here and soft in MuJoCo.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from delassus.model.readers.mjcf_names import read_names, text_at
from delassus.simulation.simulation import Simulation
from delassus.step.actuators.actuator_forces import actuator_forces
from delassus.step.selection.world_shapes import ground_shape

Array = NDArray[np.float64]

_STATES: Final = 20
"""Of MuJoCo's rollout, at which ingredients are compared."""

_EQUAL: Final = 1e-9
"""Ingredients whose relative difference is smaller agree."""

_PARTED: Final = 1e-3
"""Coordinates [rad, m] that differ by more have parted."""

_TOUCHING: Final = 1e-6
"""Gaps [m] below are contacts."""

_SAME_NORMAL: Final = 1e-6
"""Normals [rad] that differ by less are the same."""

# fmt: off
_PLAIN: Final = (
    "framepos", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel", "velocimeter", "gyro",
    "magnetometer", "tendonpos", "tendonvel", "actuatorpos", "actuatorvel", "subtreecom", "subtreelinvel",
    "subtreeangmom",
)
# fmt: on
"""Kinds of sensors that follow from position and velocity, with the same numbers in both."""

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
        raise BadArgument(
            f"{os.fspath(source)!r} is not an MJCF file: only MJCF files can be compared with MuJoCo.",
            code="not-supported",
        )
    mj = mujoco.MjModel.from_xml_path(os.fspath(source))
    steps = max(round(seconds / sim.time_step), 1)
    control = _controls(sim, steps, noise, seed)
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
        (*_start(apart[0]), *_ingredients(mujoco, mj, sim, states)),
        sim.model.omissions,
    )


def _start(apart: Array) -> Iterator[Ingredient]:
    """The start, if it was repaired here: it differs by some numbers (nq,)."""
    if apart.max(initial=0.0) > _EQUAL:
        yield Ingredient(
            "start", float(apart.max()), "moved out of the ground, or loops closed, here: rigid bodies do not overlap"
        )


def _controls(sim: Simulation, steps: int, noise: float, seed: int) -> Array:
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
    depth, turned = 0.0, 0.0
    sensors = _plain_sensors(mj, sim)
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
        for name, (places, read) in sensors.items():
            note(name, read(q, v, data.time), data.sensordata[places])
        depth = max(depth, -min((contact.dist for contact in data.contact), default=0.0))
        ours, theirs = _our_contacts(sim, q), _their_contacts(mj, data)
        pairs.append((set(ours), set(theirs)))
        turned = max([turned, *(_angle(ours[pair], theirs[pair]) for pair in ours.keys() & theirs.keys())])
    yield from (Ingredient(name, difference) for name, difference in worst.items())
    missing = sorted({" and ".join(sorted(p)) for ours, theirs in pairs for p in theirs - ours})
    shown = f"not found here: {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}" if missing else ""
    yield Ingredient("contact pairs", float(len(missing)), shown)
    if any(theirs for _, theirs in pairs):
        yield Ingredient(
            "contact normals",
            turned if turned > _SAME_NORMAL else 0.0,
            f"by up to {turned:.2g} rad" if turned > _SAME_NORMAL else "",
        )
    if depth:
        yield Ingredient("law of contact", depth, f"rigid here, soft in MuJoCo: up to {1e3 * depth:.3g} mm deep")
    method = mujoco.mjtIntegrator(int(mj.opt.integrator)).name.removeprefix("mjINT_").lower()
    yield Ingredient("integrator", float(sim.time_step), f"servos and springs implicit here, {method!r} in MuJoCo")


def _our_contacts(sim: Simulation, q: Array) -> dict[frozenset[str], tuple[str, Array]]:
    """By the names of shapes that touch here, the plane of the file among them, the first of them and the normal
    towards it, where they are deepest."""
    if not sim.scene.candidates:
        return {}
    gap, _, normal, *_ = sim.contacts(q)
    plane = ground_shape(sim.model)
    floor = plane.name if plane else "ground"
    found: dict[frozenset[str], tuple[str, Array]] = {}
    for k in sorted(np.flatnonzero(gap < _TOUCHING), key=lambda k: -gap[k]):
        one, other, _ = sim.scene.candidate_shapes[k]
        pair = frozenset((one.geometry.name, floor if other is None else other.geometry.name))
        found[pair] = one.geometry.name, normal[k]
    return found


def _their_contacts(mj: Any, data: Any) -> dict[frozenset[str], tuple[str, Array]]:
    """The contacts in MuJoCo, whose normals point from the first shape to the second."""
    names, found = read_names(mj).geoms, dict[frozenset[str], tuple[str, Array]]()
    for contact in sorted(data.contact, key=lambda contact: -contact.dist):
        if contact.dist < 0.0:
            first, second = (names[g] for g in contact.geom)
            found[frozenset((first, second))] = first, -contact.frame[:3].copy()
    return found


def _angle(one: tuple[str, Array], other: tuple[str, Array]) -> float:
    """The angle between two normals [rad], each towards the shape that it is given with."""
    sign = 1.0 if one[0] == other[0] else -1.0
    return float(np.arccos(np.clip(sign * one[1] @ other[1], -1.0, 1.0)))


def _plain_sensors(mj: Any, sim: Simulation) -> dict[str, tuple[list[int], Any]]:
    """Sensors of the file that follow from position and velocity, as one ingredient: where MuJoCo has their numbers,
    and a function that reads them here."""
    kinds = {one.name: one.kind for one in sim.model.sensors}
    plain = [name for name, kind in kinds.items() if kind in _PLAIN]
    numbers = {text_at(mj.names, mj.name_sensoradr[k]): k for k in range(mj.nsensor)}
    plain = [name for name in plain if name in numbers]
    if not plain:
        return {}
    places = [int(mj.sensor_adr[numbers[n]]) + i for n in plain for i in range(int(mj.sensor_dim[numbers[n]]))]
    sensors = sim.sensors(*plain)

    def read(q: Array, v: Array, time: float) -> Array:
        readings = sensors(replace(start, q=q, v=v, time=time))
        return np.concatenate(list(readings.values()))

    start = sim.start()
    return {"sensors": (places, read)}


def plot_comparison(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Draw how far the coordinates of both motions are apart, over time."""
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(7.0, 3.5))
    axes.semilogy(comparison.time, np.abs(comparison.ours - comparison.theirs).max(1) + 1e-17)
    axes.set(xlabel="time [s]", ylabel="largest difference [rad, m]")
    figure.savefig(path, bbox_inches="tight")
    pyplot.close(figure)
