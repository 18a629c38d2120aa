"""Soak test: many robots for many steps, with random torques, pushes, resets and faults; `make soak`.

    python -m benchmarks.soak --steps 1e8 [--robots FOLDER] [--seed 0]

Each scene is simulated twice from the same seeds: once as one batch on all threads, once in two halves on one thread.
After each round it is checked that

    no item is lost         an item is finite, or flagged as frozen; those that are frozen without a fault are counted
    no bit differs          between the two runs, in q, v, impulses, contacts, activations, status
    nothing leaks           the memory of the process does not grow after the first rounds of a scene

Faults are what happens in practice: a control, a kick or a parameter that is no number, a torque a thousand times too
large. A faulty item is frozen for the rest of its round and reset at its end, as one in a hundred others.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import delassus as dl
from delassus.simulation import Mark, Push, Simulation, State, position_servos

ITEMS = 1024
ROUND = 50
"""Control periods between two resets."""

COMPARED = ("q", "v", "impulse", "contact", "activation", "status", "count")


@dataclass
class Scene:
    """A simulation, how its items start, and how strongly they are driven."""

    name: str
    sim: Simulation
    home: Any
    targets: Any
    spread: float
    counts: Counter[str] = field(default_factory=Counter)


def bundled_scenes(items: int) -> Iterator[Callable[[], Scene]]:
    """Bundled robots on planes, slopes and hills, with servos and with torques."""
    rng = np.random.default_rng(1)
    hills = 0.05 * rng.normal(size=(24, 24))
    grounds = {
        "plane": lambda: dl.Ground(friction=np.linspace(0.1, 1.2, items)),
        "slope": lambda: dl.Ground(friction=0.6, restitution=0.3, normal=(0.2, 0.1, 1.0)),
        "hills": lambda: dl.Ground(friction=0.8, heights=hills, spacing=0.3),
        "rolling": lambda: dl.Ground(friction=0.8, torsional=0.01, rolling=0.002),
    }
    for robot, places in {
        "quadruped": ("plane", "slope", "hills", "rolling"),
        "biped": ("plane", "hills"),
        "humanoid": ("plane", "slope"),
    }.items():
        for place in places:
            yield lambda robot=robot, place=place: servo_scene(robot, f"{robot} on {place}", grounds[place]())
    yield lambda: torque_scene("quadruped", grounds["plane"]())
    yield lambda: parameter_scene(items)


def servo_scene(robot: str, name: str, ground: dl.Ground) -> Scene:
    """A robot held by position servos."""
    model = dl.load(robot)
    home, servos = model.posture("home"), position_servos(model, stiffness=80.0, damping=4.0)
    sim = Simulation(model, ground, time_step=2e-3, substeps=2, actuators=servos)
    return Scene(name, sim, home, _targets(model, home, servos), 0.3)


def torque_scene(robot: str, ground: dl.Ground) -> Scene:
    """A robot driven by random torques: it falls, and lies on the ground."""
    model = dl.load(robot)
    sim = Simulation(model, ground, time_step=2e-3, substeps=2)
    return Scene(f"{robot} under torques", sim, model.posture("home"), np.zeros(sim.nu), 8.0)


def parameter_scene(items: int) -> Scene:
    """A robot whose masses and gains differ from item to item."""
    base = dl.load("quadruped")
    servos = position_servos(base, stiffness=80.0, damping=4.0)
    model = replace(base, actuators=servos).parametric("mass:trunk", "servo")
    home, ground = base.posture("home"), dl.Ground(friction=np.linspace(0.1, 1.2, items))
    sim = Simulation(model, ground, time_step=2e-3, substeps=2)
    return Scene("quadruped with parameters", sim, home, _targets(base, home, servos), 0.3)


def file_scenes(folder: Path) -> Iterator[Callable[[], Scene]]:
    """Scenes of MJCF files, each driven around the controls of its first keyframe."""
    for path in sorted(folder.glob("*/scene*.xml")):
        yield lambda path=path: _file_scene(path)


def _file_scene(path: Path) -> Scene:
    sim = Simulation.from_file(path)
    ranges = [a.control_range or (-1.0, 1.0) for a in sim.scene.actuators]
    width = np.array([b - a for a, b in ranges]) if ranges else np.ones(sim.nu)
    key = sim.keyframe
    return Scene(f"{path.parent.name}/{path.stem}", sim, key.q, key.control, 0.1 * float(np.median(width)))


def _targets(model: dl.Model, home: Any, servos: Any) -> Any:
    return np.array([home[model.q_slice(servo.target)][0] for servo in servos])


# --- one round --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inputs:
    """What a round gives to all items: controls (periods, items, nu), a kick in the middle, faulty items."""

    controls: Any
    kick: Any
    faulty: Any
    reset: Any
    start: Any


def draw_inputs(scene: Scene, rng: np.random.Generator, items: int) -> Inputs:
    """Random inputs of a round; one of 200 items has a fault."""
    sim = scene.sim
    held = rng.normal(0.0, scene.spread, (ROUND // 5, items, sim.nu)).repeat(5, axis=0)
    controls = scene.targets + held
    kick = np.where(rng.random((items, 1)) < 0.2, rng.normal(0.0, 0.5, (items, sim.model.nv)), 0.0)
    faulty = rng.random(items) < 0.005
    for k in np.flatnonzero(faulty):
        kind, period = rng.integers(3), rng.integers(ROUND)
        if kind == 0:
            controls[period, k, rng.integers(sim.nu)] = np.nan
        elif kind == 1:
            kick[k, rng.integers(sim.model.nv)] = np.nan
        else:
            controls[period:, k] = 1e3 * rng.normal(size=sim.nu)
    start = np.tile(scene.home, (items, 1))
    for joint, q in zip(sim.model.joints, sim.model.q_starts, strict=True):
        if joint.kind.nq == 1 and joint.mimic is None:
            start[:, q] += rng.normal(0.0, 0.02, items)
    return Inputs(controls, kick, faulty, rng.random(items) < 0.01, start)


def play(sim: Simulation, state: State, inputs: Inputs, part: slice) -> State:
    """A round of some items."""
    for k in range(ROUND):
        push = Push(kick=inputs.kick[part]) if k == ROUND // 2 else None
        state = sim.step(state, inputs.controls[k, part], push=push)
    return state


def digest(state: State) -> str:
    """Of all that a state holds; which NaN a number is does not count."""
    h = hashlib.sha256()
    for name in COMPARED:
        x = np.asarray(getattr(state, name), float) + 0.0
        h.update(np.where(np.isnan(x), np.nan, x).tobytes())
    return h.hexdigest()


class Failure(Exception):
    """What a soak test is there to find."""


def soak(scene: Scene, steps: int, seed: int, items: int) -> tuple[int, float]:
    """Simulate a scene for so many robot steps, twice; robot steps that were made, and the growth of memory [MB]."""
    sim, rng, made, memory = scene.sim, np.random.default_rng(seed), 0, list[float]()
    first = draw_inputs(scene, rng, items)
    state = again = sim.start(first.start)
    halves = (slice(0, items // 2), slice(items // 2, items))
    split = not sim.ground.batch
    while made < steps:
        inputs = draw_inputs(scene, rng, items)
        state = play(sim, state, inputs, slice(None))
        threads = dl.threads()
        dl.threads(1)
        parts = [play(sim, again[half], inputs, half) for half in halves] if split else []
        again = State.join(parts) if split else play(sim, again, inputs, slice(None))
        dl.threads(threads)
        if digest(state) != digest(again):
            raise Failure(f"{scene.name}: bits differ between two runs after {made} steps.")
        _check_items(scene, state, inputs)
        made += 2 * items * ROUND * sim.scene.substeps
        done = state.frozen | inputs.reset
        state = sim.reset(state, done, inputs.start)
        again = sim.reset(again, done, inputs.start)
        memory.append(_resident())
    growth = memory[-1] - memory[min(2, len(memory) - 1)]
    if growth > 64.0:
        raise Failure(f"{scene.name}: memory grew by {growth:.0f} MB in {len(memory)} rounds.")
    return made, growth


def _check_items(scene: Scene, state: State, inputs: Inputs) -> None:
    """Every item is finite or frozen, and frozen for a reason."""
    finite = np.isfinite(state.q).all(-1) & np.isfinite(state.v).all(-1)
    if not (finite | state.frozen).all():
        raise Failure(
            f"{scene.name}: items {np.flatnonzero(~finite & ~state.frozen)[:5]} are no numbers and not flagged."
        )
    without_fault = state.frozen & ~inputs.faulty
    scene.counts["frozen without a fault"] += int(without_fault.sum())
    scene.counts["frozen"] += int(state.frozen.sum())
    for mark in (Mark.UNSOLVED, Mark.MANY_CONTACTS, Mark.TOO_LONG):
        scene.counts[str(mark.name).lower()] += int(np.count_nonzero(state.status & int(mark)))
    scene.counts["items"] += len(state.q)


def _resident() -> float:
    """Memory of this process [MB]."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return float(line.split()[1]) / 1024.0
    return 0.0


def main(words: list[str] | None = None) -> int:
    """Run, print a table, and give 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=float, default=1e8, help="robot steps of all scenes together")
    parser.add_argument("--robots", type=Path, help="a folder of MJCF scenes, */scene*.xml")
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="scenes whose name contains this")
    given = parser.parse_args(words)
    makers = [*bundled_scenes(given.items), *(file_scenes(given.robots) if given.robots else ())]
    print(
        f"{'scene':32} {'robot steps':>12} {'frozen':>7} {'no fault':>8} {'unsolved':>8} {'crowded':>8} {'MB':>6} "
        f"{'µs':>6}"
    )
    total, failures = 0, []
    for k, make in enumerate(makers):
        scene = make()
        if given.only not in scene.name:
            continue
        begin = time.process_time()
        try:
            made, growth = soak(scene, int(given.steps / len(makers)), given.seed + k, given.items)
        except Failure as failure:
            failures.append(str(failure))
            print(failure)
            continue
        total += made
        c, used = scene.counts, 1e6 * (time.process_time() - begin) / made
        print(
            f"{scene.name:32} {made:12} {c['frozen']:7} {c['frozen without a fault']:8} {c['unsolved']:8} "
            f"{c['many_contacts']:8} {growth:6.1f} {used:6.1f}",
            flush=True,
        )
    print(f"{total} robot steps, {len(failures)} failures")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
