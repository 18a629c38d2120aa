"""Robots with closed loops: every method on 4 096 states, then 10 s of motion with and without drift correction.

First, a quadruped on its four feet and a biped whose knees are driven through closed loops, standing on both soles, are
solved by all methods and held against the dense answer. Then bipeds hang by their soles from the ceiling, and delta
robots on springs in their arms; both swing freely. Their loops must stay closed and their energy must not change.

Run it with `make closed-loops`; the pictures go to output/.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy
from sticks import LOOP, View, draw

import delassus as dl
from delassus.compiler import scan

STATES, COMPARED = 4096, 64  # solved by each method; of those, compared with the dense answer
ROBOTS, SECONDS, STEP, RECORD_EVERY = 64, 10.0, 1e-3, 20
METHODS = (dl.caba, dl.prox_pv, dl.prox_ltl, dl.prox_ltls)
OUTPUT = Path(__file__).parent.parent / "output"
rng = numpy.random.default_rng(0)


# --- every method on many states ------------------------------------------------------------------------------------


def standing_quadruped() -> dl.Mechanism:
    """Four feet that do not slip: 12 rows."""
    model = dl.load("quadruped")
    return dl.Mechanism(model, [dl.Point(f, position=place(model, f.name).p) for f in model.frames("*_foot")])


def standing_biped() -> dl.Mechanism:
    """The loops that come with the model, and two soles flat on the ground: 18 rows, of which 2 say nothing new."""
    model = dl.load("biped")
    return dl.Mechanism(model, [dl.Weld(f, target=place(model, f.name)) for f in model.frames("*_sole")])


def place(model: dl.Model, frame: str) -> dl.Placement:
    """Where a frame is in the posture "home"."""
    return dl.Placement.of(*dl.frame_placement(model, model.posture("home"), frame=frame))


def compare_methods(mechanism: dl.Mechanism) -> None:
    """Print a row for each method: time for a state, how well rows are met, distance from the dense answer."""
    around = 0.05 * rng.normal(size=(STATES, mechanism.nv))
    q = dl.integrate(mechanism, numpy.tile(mechanism.model.posture("home"), (STATES, 1)), around)
    q = dl.assemble(mechanism, q).q  # feet back on the ground, loops closed
    q, v = dl.project(mechanism, q, rng.normal(size=(STATES, mechanism.nv)))
    tau = 10.0 * rng.normal(size=(STATES, mechanism.nv))
    few = (q[:COMPARED], v[:COMPARED], tau[:COMPARED])
    dense, _ = dl.kkt(mechanism, *few)
    name, nv, m = mechanism.model.name, mechanism.nv, mechanism.m
    print(f"{name}: {nv} velocities, {m} rows, {STATES} states, 3 iterations, one thread")
    print("  method      µs per state   largest residual [m/s², rad/s²]   difference from kkt")
    for method in METHODS:
        solve = method.specialize(mechanism)
        a, force = solve(q, v, tau)
        residual, _ = dl.constrained.constraint_residual(mechanism, q, v, a, force)
        apart = abs(a[:COMPARED] - dense).max() / abs(dense).max()
        each = 1e6 * best_time(lambda solve=solve: solve(q, v, tau)) / STATES
        print(f"  {method.name:10} {each:13.3f} {abs(residual).max():22.1e} {apart:25.1e}")
    each = 1e6 * best_time(lambda: dl.kkt(mechanism, *few)) / COMPARED
    print(f"  {'kkt':10} {each:13.3f}   (the dense answer by singular values, in NumPy: the reference)\n")


def best_time(call, repeats: int = 7) -> float:
    """The shortest of some runs [s]: what others do on the machine only makes it longer."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


# --- motion ---------------------------------------------------------------------------------------------------------


@dl.kernel("(nq),(nv)->(nq),(nv)")
def advance(mechanism: dl.Mechanism, q, v, *, corrected: bool):
    """The state RECORD_EVERY steps later, by the midpoint rule; `corrected` takes the drift of each step off."""

    def acceleration(q, v):
        return dl.caba(mechanism, q, v, dl.dynamics.passive_forces(mechanism, q, v))[0]

    def step(state, _):
        q, v = state
        v_half = v + STEP / 2 * acceleration(q, v)
        a_half = acceleration(dl.integrate(mechanism, q, STEP / 2 * v), v_half)
        state = dl.integrate(mechanism, q, STEP * v_half), v + STEP * a_half
        return tuple(dl.project(mechanism, *state)) if corrected else state, None

    return scan(step, (q, v), length=RECORD_EVERY)[0]


def hanging_biped() -> tuple[dl.Mechanism, numpy.ndarray]:
    """A biped upside down, its soles on the ceiling, and states with the pelvis pulled aside."""
    model = dl.load("biped")
    q = model.posture("home").copy()
    q[2:7] = -q[2], 1.0, 0.0, 0.0, 0.0  # half a turn about x: soles up, at z = 0
    soles = [
        dl.Weld(frame, target=dl.Placement.of(*dl.frame_placement(model, q, frame=frame.name)))
        for frame in model.frames("*_sole")
    ]
    mechanism = dl.Mechanism(model, soles)
    q = numpy.tile(q, (ROBOTS, 1))
    q[:, :3] += rng.uniform((-0.2, -0.05, -0.07), (0.2, 0.05, -0.05), size=(ROBOTS, 3))
    return mechanism, close(mechanism, q, "pelvis_joint")


def hanging_delta() -> tuple[dl.Mechanism, numpy.ndarray]:
    """A delta whose arms are held up by springs, and states with the arms at angles of their own."""
    model = dl.load("delta")
    springs = {"stiffness": (2.0,), "rest": (-0.2,)}  # N·m/rad, rad: they balance gravity near "home"
    joints = (replace(joint, **springs) if joint.name.startswith("arm") else joint for joint in model.joints)
    mechanism = dl.Mechanism(replace(model, joints=tuple(joints)))
    q = numpy.tile(model.posture("home"), (ROBOTS, 1))
    for k in range(3):
        q[:, model.q_starts[model.joint_index(f"arm{k}_joint")]] = rng.uniform(-0.4, 0.4, ROBOTS)
    return mechanism, close(mechanism, q, "arm*")


def close(mechanism: dl.Mechanism, q, locked: str):
    """Configurations near some where all loops are closed; the joints that are locked stay as they are."""
    return dl.assemble(mechanism, q, locked=[locked], tolerance=1e-13).q


@dataclass(frozen=True)
class Motion:
    """What a roll-out recorded: configurations (frames, ROBOTS, nq), and by frame and robot error and energy."""

    q: numpy.ndarray
    error: numpy.ndarray  # m, rad
    energy: numpy.ndarray  # J
    kinetic: numpy.ndarray  # J
    seconds: float


def roll(mechanism: dl.Mechanism, q, *, corrected: bool) -> Motion:
    """From rest under gravity, with or without drift correction."""
    run = advance.specialize(mechanism, corrected=corrected)
    advance.warm_up(mechanism, batch=True, corrected=corrected)  # so that the clock sees the running alone
    states = [(q, numpy.zeros((len(q), mechanism.nv)))]
    start = time.perf_counter()
    for _ in range(round(SECONDS / STEP / RECORD_EVERY)):
        states.append(run(*states[-1]))
    seconds = time.perf_counter() - start
    q, v = (numpy.stack(parts) for parts in zip(*states, strict=True))
    kinetic = dl.kinetic_energy(mechanism, q, v)
    potential = dl.potential_energy(mechanism, q) + dl.dynamics.spring_energy(mechanism, q)
    error = abs(dl.constrained.constraint_error(mechanism, q)).max(-1)
    return Motion(q, error, kinetic + potential, kinetic, seconds)


def compare_drift(mechanism: dl.Mechanism, q) -> tuple[Motion, Motion]:
    """Roll without and with drift correction, and print what came of it."""
    motions = tuple(roll(mechanism, q, corrected=corrected) for corrected in (False, True))
    name, steps = mechanism.model.name, ROBOTS * SECONDS / STEP
    print(f"{ROBOTS} {name}s for {SECONDS:g} s, steps of {1e3 * STEP:g} ms, {mechanism.m} rows, one thread")
    for label, motion in zip(("as integrated", "drift corrected"), motions, strict=True):
        drift, kinetic = abs(motion.energy - motion.energy[0]).max(), motion.kinetic.max()
        print(
            f"  {label:15} {motion.seconds:5.2f} s, {1e6 * motion.seconds / steps:.2f} µs per step; loops open by "
            f"{motion.error.max():.1e} m or rad at most; energy off by {drift:.0e} J (kinetic: {kinetic:.2g} J)"
        )
    return motions


# --- pictures -------------------------------------------------------------------------------------------------------


def draw_drift(runs, path: Path) -> None:
    """Closure errors and energies against time, with and without correction, for each kind of robot."""
    figure, axes = plt.subplots(2, len(runs), figsize=(5.2 * len(runs), 6.4), layout="constrained", squeeze=False)
    for (above, below), (mechanism, motions) in zip(axes.T, runs, strict=True):
        for label, color, motion in zip(("as integrated", "corrected"), (LOOP, "#2471a3"), motions, strict=True):
            t = numpy.linspace(0, SECONDS, len(motion.q))[1:]
            above.semilogy(t, numpy.maximum(motion.error[1:].max(1), 1e-17), color=color, label=label)
            below.semilogy(t, abs(motion.energy - motion.energy[0])[1:].max(1), color=color, label=label)
        above.set(title=f"{mechanism.model.name}: how far its loops open", xlabel="t [s]", ylabel="m or rad")
        below.set(title=f"{mechanism.model.name}: change of energy", xlabel="t [s]", ylabel="J")
        below.axhline(motions[1].kinetic.max(), color="#7f8c8d", linestyle=":", label="largest kinetic energy")
        above.grid(alpha=0.3)
        below.grid(alpha=0.3)
    figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(f"The worst of {ROBOTS} robots, steps of {1e3 * STEP:g} ms by the midpoint rule")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_motion(runs, path: Path, shots: int = 7, apart: float = 0.24) -> None:
    """One robot of each kind at some moments [s] of its corrected motion, and the way of its free body until then."""
    figure, axes = plt.subplots(len(runs), shots, figsize=(13, 3.3 * len(runs)), layout="constrained", squeeze=False)
    view, heights = View(elevation=25.0), []
    for row, (mechanism, (_, motion)) in zip(axes, runs, strict=True):
        model = mechanism.model
        frames = numpy.minimum(numpy.arange(shots) * round(apart / STEP / RECORD_EVERY), len(motion.q) - 1)
        free = next(k for k, joint in enumerate(model.joints) if joint.kind.nv == 6)
        way = view(dl.forward_kinematics(model, motion.q[:, 0])[1][:, free])
        for axis, frame in zip(row, frames, strict=True):
            draw(axis, mechanism, motion.q[frame, 0], view)
            axis.plot(*way[: frame + 1].T, color="#e67e22", linewidth=1.2)
            axis.set_title(f"{model.name}, {frame * RECORD_EVERY * STEP:.2f} s", fontsize="medium")
        heights.append(share_limits(row))
    axes[0, 0].get_gridspec().set_height_ratios(heights)
    figure.suptitle("Squares: held by the world. Red: where loops are closed. Orange: the way of pelvis and platform")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def share_limits(axes) -> float:
    """The same scale for all plots of a row, without frames; returns their height as a share of their width."""
    boxes = numpy.array([[*axis.get_xlim(), *axis.get_ylim()] for axis in axes])
    (left, low), (right, high) = boxes[:, ::2].min(0), boxes[:, 1::2].max(0)
    for axis in axes:
        axis.set(xlim=(left, right), ylim=(low, high), aspect="equal")
        axis.axis("off")
    return (high - low) / (right - left)


def main(standing=(standing_quadruped, standing_biped), hanging=(hanging_biped, hanging_delta)) -> None:
    """Solve, roll, draw."""
    print("The first run compiles for half a minute or so; later runs find the code in the cache.\n")
    for make in standing:
        compare_methods(make())
    runs = []
    for make in hanging:
        mechanism, q = make()
        runs.append((mechanism, compare_drift(mechanism, q)))
    OUTPUT.mkdir(exist_ok=True)
    draw_drift(runs, OUTPUT / "closed_loops_drift.png")
    draw_motion(runs, OUTPUT / "closed_loops_motion.png")
    print(f"\npictures: {OUTPUT / 'closed_loops_drift.png'} and {OUTPUT / 'closed_loops_motion.png'}")


if __name__ == "__main__":
    main()
