"""Ropes and cloth of 10⁵ unknowns: a step, against SciPy's spsolve on the same matrix, and MuJoCo's cable and flex."""

from __future__ import annotations

import time
from typing import Any, Final

import mujoco
import numpy as np
from scipy.sparse.linalg import spsolve

import delassus.particles as P
from benchmarks.timing import best_of_each

STEP: Final = 1e-2
ROPES: Final = (10_000, 100_000, 1_000_000)
CLOTHS: Final = (10_000, 100_000, 1_000_000)
SHARES: Final = ("elements", "assembly", "solve")


def rope(unknowns: int) -> P.Particles:
    """A rope with bending that hangs between two points."""
    segments = unknowns // 3 + 1
    return P.rope((0, 0, 0), (1e-2 * segments, 0, 0), segments, stiffness=1e4, bending=1e-4, density=0.1)


def cloth(unknowns: int) -> P.Particles:
    """A square cloth that hangs on one edge, with cells of 1 cm."""
    cells = round(np.sqrt(unknowns / 3.0))
    return P.cloth((1e-2 * cells, 1e-2 * cells), (cells, cells - 1), pinned=("left",))


def moving(system: P.Particles, **options: Any) -> tuple[P.Stepper, Any]:
    """A stepper, and a state after a step; forces that turn are explicit, as the matrix of W then is the simplest."""
    stepper = P.Stepper(system, STEP, geometric_stiffness=False, **options)
    return stepper, stepper.step(P.initial_state(system)).state


class Going:
    """Steps that go on from each other: what a step finds to be as before is so in no other way than in a motion."""

    def __init__(self, stepper: P.Stepper, state: Any) -> None:
        self.stepper, self.state = stepper, state

    def __call__(self) -> Any:
        """One more."""
        made = self.stepper.step(self.state)
        self.state = made.state
        return made


def by_spsolve(stepper: P.Stepper) -> Any:
    """A call of spsolve on the matrix and the right-hand side of the last step."""
    system = stepper.system
    assert system is not None
    free = np.flatnonzero(system.free)
    matrix = stepper.assembly.pattern.matrix(system.A).tocsc()[free][:, free]
    right = (system.c - system.JT @ (system.b / system.E))[free]
    return lambda: spsolve(matrix, right)


def by_ours(stepper: P.Stepper) -> Any:
    """The factor and the solve of the same, the pattern known."""
    system = stepper.system
    assert system is not None
    right = system.c - system.JT @ (system.b / system.E)
    return lambda: stepper.assembly.factor.factor(system.A).solve(right)


def against_spsolve() -> list[str]:
    """A table of steps and solves of 10⁵ unknowns."""
    lines = [
        "### A step of 10⁵ unknowns, against `scipy.sparse.linalg.spsolve` on the same matrix\n",
        "| | unknowns | our step | our factor and solve | `spsolve` | step against `spsolve` | differ by |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, build, repeat in (("rope", rope, 3), ("cloth", cloth, 1)):
        system = build(100_000)
        stepper, state = moving(system)
        stepper.step(state)
        ours, theirs = by_ours(stepper), by_spsolve(stepper)
        free = np.flatnonzero(stepper.system.free)  # type: ignore[union-attr]
        known = theirs()
        apart = np.abs(ours()[free] - known).max() / np.abs(known).max()
        tasks = {"step": Going(stepper, state), "ours": ours, "spsolve": theirs}
        seconds = best_of_each(tasks, repeat=repeat)
        ratio = seconds["spsolve"] / seconds["step"]
        lines.append(
            f"| {name} | {system.unknowns:,} | {_told(seconds['step'])} | {_told(seconds['ours'])} | "
            f"{_told(seconds['spsolve'])} | {ratio:.1f} | {apart:.0e} |"
        )
    return lines


def growth() -> list[str]:
    """A table of times of steps as systems grow, and what they are spent on."""
    lines = [
        "\n### Steps as systems grow\n",
        "| | unknowns | found once | a step | a step and unknown | elements | assembly | solve |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, build, sizes in (("rope", rope, ROPES), ("cloth", cloth, CLOTHS)):
        for size in sizes:
            system = build(size)
            start = time.perf_counter()
            stepper, state = moving(system)
            once = time.perf_counter() - start
            going = Going(stepper, state)
            best = min((going() for _ in range(2)), key=lambda made: sum(made.seconds.values()))
            total = sum(best.seconds.values())
            shares = " | ".join(f"{100 * best.seconds[key] / total:.0f} %" for key in SHARES)
            per = f"{1e9 * total / system.unknowns:.0f} ns"
            told = f"{name}, {stepper.ways.method}"
            lines.append(f"| {told} | {system.unknowns:,} | {_told(once)} | {_told(total)} | {per} | {shares} |")
    return lines


def mujoco_cable(links: int) -> mujoco.MjModel:
    """MuJoCo's cable: a flex of one dimension that stretches and bends, one end pinned."""
    text = f"""<mujoco><option timestep="{STEP}" integrator="discrete"><flag contact="disable"/></option>
      <worldbody><flexcomp name="cable" type="grid" dim="1" count="{links + 1} 1 1" spacing="0.01 0.01 0.01" mass="1">
      <elasticity young="1e6" section="circle" sectionsize="0.002 0.002"/><pin id="0"/></flexcomp>
      </worldbody></mujoco>"""
    return mujoco.MjModel.from_xml_string(text)


def mujoco_flex(cells: int) -> mujoco.MjModel:
    """MuJoCo's cloth: a flex of two dimensions that stretches and bends, one edge pinned."""
    pins = " ".join(str(k) for k in range(cells + 1))
    text = f"""<mujoco><option timestep="{STEP}" integrator="discrete"><flag contact="disable"/></option><worldbody>
      <flexcomp name="cloth" type="grid" dim="2" count="{cells + 1} {cells + 1} 1" spacing="0.01 0.01 0.01" mass="1">
      <elasticity young="1e5" poisson="0.2" thickness="1e-3" elastic2d="both"/><pin id="{pins}"/></flexcomp>
      </worldbody></mujoco>"""
    return mujoco.MjModel.from_xml_string(text)


def against_mujoco() -> list[str]:
    """A table of steps of cables and cloth that MuJoCo can hold."""
    lines = [
        "\n### Against MuJoCo's cable and flex\n",
        "| | MuJoCo's velocities | its step | our unknowns | our step | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name, model, system in (
        ("cable of 300 links", mujoco_cable(300), rope(900)),
        ("cable of 3000 links", mujoco_cable(3000), rope(9000)),
        ("cloth of 30 × 30 cells", mujoco_flex(30), cloth(3 * 31 * 31)),
        ("cloth of 80 × 80 cells", mujoco_flex(80), cloth(3 * 81 * 81)),
    ):
        data = mujoco.MjData(model)
        stepper, state = moving(system)
        tasks = {"theirs": lambda m=model, d=data: mujoco.mj_step(m, d), "ours": Going(stepper, state)}
        seconds = best_of_each(tasks, repeat=5)
        lines.append(
            f"| {name} | {model.nv:,} | {_told(seconds['theirs'])} | {system.unknowns:,} | {_told(seconds['ours'])} | "
            f"{seconds['theirs'] / seconds['ours']:.1f} |"
        )
    lines.append(
        "\nSteps of 10 ms, by MuJoCo's integrator `discrete`, its implicit one for flexes; one thread each. Both hang "
        "from an end or an edge, without contacts.\n"
    )
    return lines


def run() -> str:
    """All tables."""
    return "\n".join([*against_spsolve(), *growth(), *against_mujoco()])


def _told(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


if __name__ == "__main__":
    print(run())
