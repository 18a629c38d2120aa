"""Kernels whose programs are on record: digest and number of traced operations, in `golden/kernels.json`.

The record is a guard for changes that are to leave the mathematics alone, not an oracle: it says that something is
different, never what is right. A digest is that of the program before it is lowered, so it knows nothing of the CPU
(multiply-adds, vectors) or of the process. Nothing is compiled.

When a change is meant, write the record anew, and say in the commit why:

    python tests/golden_kernels.py            writes all of it, and prints what is different
    python tests/golden_kernels.py --check    only prints

Kernels of `EXACT` keep their digest. Those of `BOUNDED` may change: they may have up to `GROWTH` more operations, and
their digest is for information. Among these are the ones whose constants NumPy's linear algebra computes, to a last
digit that depends on the CPU: the delta robot has frames that are products of rotations, `constrained_dynamics` scales
that are diagonals of an inverse.
"""

import json
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import delassus as dl
from delassus.compiler.graph.program import Program
from delassus.compiler.host.kernel import Kernel
from delassus.constrained import (
    caba,
    constrained_dynamics,
    impact,
    project,
    prox_ltl,
    prox_ltls,
    prox_pv,
    pv_early,
    pv_soft,
    three_steps,
)
from delassus.constrained.solvers.kkt import dense_system
from delassus.contact.cones.kinds import Free, Friction, Interval, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.contact.solvers.registry import solver_names
from delassus.contact.solvers.solve import solve_contacts
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED
from delassus.control import FollowCenterOfMass, FollowPosture, Nominal, ReactiveControl, Support
from delassus.control.reactive.react import react
from delassus.integrators.advance import advance
from delassus.integrators.choice import INTEGRATORS
from delassus.integrators.task import Task
from delassus.model.bundled import BUNDLED
from delassus.step.compliant.kernel import compliant_kernel
from delassus.step.contact.rigid import contact_step
from delassus.step.period.kernels import assemble_step, simulate
from delassus.step.scene import Scene

RECORD = Path(__file__).parent / "golden" / "kernels.json"
GROWTH = 0.02
"""The share of operations by which a kernel of `BOUNDED` may grow."""


class Golden(NamedTuple):
    """What is on record of a program: the first 16 digits of its digest, and its operations.

    The bodies of loops count once.
    """

    digest: str
    operations: int

    @classmethod
    def of(cls, program: Program) -> "Golden":
        return cls(program.digest[:16], sum(program.count().values()))


# --- robots -----------------------------------------------------------------------------------------------------------


@cache
def mechanism(name: str) -> dl.Mechanism:
    """A robot of the package with its loops, or on its feet where it has none."""
    model = dl.load(name)
    if name == "quadruped":
        return dl.Mechanism(model, [dl.Point(foot) for foot in model.frames("*_foot")])
    if name == "humanoid":
        return dl.Mechanism(model, [dl.Weld(sole) for sole in model.frames("*_sole")])
    return dl.Mechanism(model)


@cache
def scene(name: str, **options: Any) -> Scene:
    """A robot that may touch the ground with its feet, or its tip."""
    model = dl.load(name)
    if name == "quadruped":
        contacts = [dl.Contact(foot, radius=0.02) for foot in model.frames("*_foot")]
    elif name == "biped":
        contacts = [dl.Contact.foot(sole, 0.22, 0.1) for sole in model.frames("*_sole")]
    elif name == "double_pendulum":
        contacts = [dl.Contact("tip", radius=0.01)]
    else:
        contacts = []
    return Scene(dl.Mechanism(model), tuple(contacts), **options)


@cache
def simulation(name: str, **options: bool) -> dl.Simulation:
    return dl.Simulation(dl.load(name), **options)


def task(name: str, integrator: str, **options: str) -> Task:
    return Task(mechanism(name), INTEGRATORS[integrator], **options)


def standing() -> ReactiveControl:
    """Of a quadruped on its feet."""
    model = dl.load("quadruped")
    tasks = (
        FollowCenterOfMass(weight=10.0, stiffness=50.0),
        FollowPosture(weight=0.1, stiffness=20.0),
        Nominal(force=1e-4),
    )
    return ReactiveControl(model, tasks=tasks, supports=[Support(foot.name, 0.6) for foot in model.frames("*_foot")])


FOUR_FEET = Layout((Friction(),) * 4)
ALL_CONES = Layout((Free(3), NonNegative(2), Interval(2), Friction(), Friction()))

# --- kernels ----------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A kernel for a model, which is built when it is needed, with the optional inputs that it takes, and options."""

    kernel: Kernel[..., Any]
    model: Callable[[], Any]
    inputs: tuple[str, ...] = ()
    options: Mapping[str, Any] = MappingProxyType({})

    def golden(self) -> Golden:
        return Golden.of(self.kernel.program(self.model(), inputs=self.inputs, **self.options))


def _exact() -> dict[str, Case]:
    solvers, closed = (caba, prox_ltl, prox_ltls, prox_pv), ("slider_crank", "four_bar", "five_bar", "stewart")
    cases = {
        f"{kernel.name} {name}": Case(kernel, partial(dl.load, name))
        for name in BUNDLED
        for kernel in (dl.aba, dl.rnea, dl.crba)
    }
    pairs = [(kernel, name) for name in (*closed, "quadruped", "biped", "humanoid") for kernel in solvers]
    pairs += [(kernel, name) for name in ("four_bar", "quadruped") for kernel in (pv_soft, three_steps, dense_system)]
    pairs += [(pv_early, name) for name in ("quadruped", "humanoid")]
    cases |= {f"{kernel.name} {name}": Case(kernel, partial(mechanism, name)) for kernel, name in pairs}
    for kernel in (caba, prox_pv):
        for inputs in (("mask",), ("force", "acceleration")):
            title = f"{kernel.name} quadruped with {' and '.join(inputs)}"
            cases[title] = Case(kernel, partial(mechanism, "quadruped"), inputs)
    cases["aba quadruped, float32"] = Case(dl.aba, partial(dl.load, "quadruped"), options={"dtype": "float32"})
    return cases


def _bounded() -> dict[str, Case]:
    servos = ("servo.stiffness", "servo.damping", "servo.target")
    bouncing = ("contact.friction", "contact.restitution")
    quadruped, pendulum = partial(scene, "quadruped"), partial(scene, "double_pendulum")
    four_bar = partial(scene, "four_bar")
    stopped = partial(scene, "double_pendulum", max_limits=None, joint_friction=True)
    middle = {"midpoint": True}
    cases = {
        "contact_step quadruped": Case(contact_step, quadruped, ("contact.friction",)),
        "contact_step quadruped, restitution": Case(contact_step, quadruped, bouncing),
        "contact_step double_pendulum, limits": Case(contact_step, stopped, ("contact.friction",)),
        "contact_step double_pendulum, pgs": Case(contact_step, pendulum, ("contact.friction",), {"method": "pgs"}),
        "compliant_kernel quadruped": Case(compliant_kernel, quadruped, ("contact.friction",)),
        "compliant_kernel quadruped, blend": Case(
            compliant_kernel, quadruped, ("contact.friction", "scheme.alpha", "scheme.beta")
        ),
        "compliant_kernel quadruped, restitution": Case(compliant_kernel, quadruped, bouncing),
        "compliant_kernel double_pendulum, reflections": Case(
            compliant_kernel, pendulum, bouncing, {"impacts": "reflections"}
        ),
        "compliant_kernel double_pendulum, limits": Case(compliant_kernel, stopped, ("contact.friction",)),
        "compliant_kernel delta, servos": Case(compliant_kernel, partial(scene, "delta"), servos),
        "compliant_kernel four_bar, midpoint": Case(compliant_kernel, four_bar, ("scheme.beta",), middle),
        "compliant_kernel four_bar, projected": Case(compliant_kernel, four_bar, (), {"stabilization": "project"}),
        "react quadruped": Case(react, standing),
        "impact quadruped": Case(impact, partial(mechanism, "quadruped")),
        "simulate double_pendulum, full": Case(simulate, lambda: simulation("double_pendulum").scene),
        "simulate quadruped, full": Case(simulate, lambda: simulation("quadruped").scene),
        "assemble_step quadruped, reduced": Case(assemble_step, lambda: simulation("quadruped").reduced_scene),
        "solve_contacts all cones": Case(
            solve_contacts, lambda: ALL_CONES, ("friction", "lower", "upper", "start", "compliance")
        ),
        "advance four_bar, rk4, projected": Case(advance, partial(task, "four_bar", "rk4", projection="steps")),
    }
    for name in ("quadruped", "biped", "arm7", "five_bar"):
        cases[f"simulate {name}, reduced"] = Case(simulate, lambda name=name: simulation(name).reduced_scene)
    for method in solver_names(COMPILED):
        cases[f"solve_contacts four feet, {method}"] = Case(
            solve_contacts, lambda: FOUR_FEET, ("friction",), {"method": method}
        )
    for method in INTEGRATORS:
        cases[f"advance double_pendulum, {method}"] = Case(advance, partial(task, "double_pendulum", method))
    for kernel in (caba, prox_ltl, prox_ltls, prox_pv):
        cases[f"{kernel.name} delta"] = Case(kernel, partial(mechanism, "delta"))
    for kernel in (constrained_dynamics, project):
        for name in ("four_bar", "quadruped"):
            cases[f"{kernel.name} {name}"] = Case(kernel, partial(mechanism, name))
    return cases


EXACT = _exact()
BOUNDED = _bounded()


def recorded() -> dict[str, Golden]:
    """The record, by the names of cases."""
    return {name: Golden(*entry) for name, entry in json.loads(RECORD.read_text()).items()}


def main(write: bool) -> None:
    before = recorded() if RECORD.exists() else {}
    now = {name: case.golden() for name, case in (EXACT | BOUNDED).items()}
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            print(f"{name}: {before.get(name)} -> {now.get(name)}")
    if write:
        lines = (f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in now.items())
        RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(write="--check" not in sys.argv[1:])
