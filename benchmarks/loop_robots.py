"""Robots with closed loops, here and in Pinocchio: hands and humanoids with a cube, bipeds, chains of loops.

Loops are plain data, as in the tests. A frame that is tied to another is put where the other one is in the
configuration q, so loops are closed there. Joints are in depth-first order, as Pinocchio's solvers assume.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
from tests.in_pinocchio import Loop, to_pinocchio

import delassus as dl
from benchmarks.cassie import load_cassie
from benchmarks.constrained import HAND, SOLES, TIPS, robot
from benchmarks.dynamics import folder
from delassus.model import Free, Revolute
from delassus.model.bundled.build import Assembly, box
from delassus.model.equality import Connect
from delassus.model.generators import chain
from delassus.model.parts import WORLD, Frame

EMPTY = dl.Model("world", (), (Frame("world", WORLD),))
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
SIDES = ("left", "right")
LINKS_PER_LOOP = 7
CASSIES_FOOT = dl.Placement.from_xyz_rpy((0.01, 0.045, 0.0), (0.0, math.pi / 2, -0.695))
"""The cylinder of Cassie's foot, along z, on the foot."""


@dataclass(frozen=True, eq=False)
class LoopRobot:
    """A tree, what closes its loops and holds it, and a configuration (nq,) in which they are closed."""

    name: str
    model: dl.Model
    loops: tuple[Loop, ...]
    q: Any

    @cached_property
    def theirs(self) -> pin.Model:
        """The same in Pinocchio."""
        return to_pinocchio(self.model)


def hand_with_cube() -> LoopRobot:
    """An Allegro hand, its four fingertips on a cube: 22 velocities, 12 rows."""
    hand = EMPTY.attach(_hand("right"), "world", prefix="right_")
    return _holding_cube("hand with cube", hand, [f"right_{tip}" for tip in TIPS])


def two_hands_with_cube() -> LoopRobot:
    """Two Allegro hands, their eight fingertips on one cube: 38 velocities, 24 rows."""
    hands = EMPTY
    for side, turn in (("left", 0.0), ("right", math.pi)):
        hands = hands.attach(_hand(side), "world", dl.Placement.from_xyz_rpy((0, 0, 0), (0, turn, 0)), f"{side}_")
    return _holding_cube("two hands with cube", hands, _both_tips())


def humanoid_with_cube() -> LoopRobot:
    """Talos with two Allegro hands on a cube, both feet welded to the ground: 36 rows."""
    talos = dl.pinocchio.from_pinocchio(robot("Talos with hands")[1])
    held = _holding_cube("humanoid with cube", talos, _both_tips())
    return replace(held, loops=(*held.loops, *_on_the_ground(SOLES)))


def biped() -> LoopRobot:
    """The package's biped with the loops of its knees, feet welded to the ground: 22 velocities, 18 rows."""
    model = dl.load("biped")
    loops = (*_own_loops(model), *_on_the_ground([f"{side}_sole" for side in SIDES]))
    return LoopRobot("biped", replace(model, constraints=()), loops, model.posture("home"))


def cassie() -> LoopRobot:
    """Cassie with its four loops, toes and heels on the ground, as its legs cannot turn a foot about the line between.

    28 velocities, 24 rows.
    """
    model = load_cassie(folder())
    loops = _own_loops(model)
    for side, end in ((side, end) for side in SIDES for end in ("toe", "heel")):
        tip = dl.Placement.of(p=(0, 0, 0.09 if end == "toe" else -0.09))
        model = model.with_frame(f"{side}-{end}", f"{side}-foot", CASSIES_FOOT * tip)
        loops = (*loops, Loop("point", f"{side}-{end}", None))
    return LoopRobot("Cassie", replace(model, constraints=()), loops, model.posture("home"))


def two_bipeds_with_box() -> LoopRobot:
    """Two bipeds face each other and carry a box, welded to their pelvises; feet welded too: 50 velocities, 48 rows."""
    one, model, q = dl.load("biped"), replace(EMPTY, name="two bipeds with box"), []
    for k, side in enumerate(SIDES):
        model = model.attach(one, "world", dl.Placement.from_xyz_rpy((1.2 * k, 0, 0), (0, 0, math.pi * k)), f"{side}_")
        q += one.posture("home").tolist()
    loops = (*_own_loops(model), *_on_the_ground([f"{a}_{b}_sole" for a in SIDES for b in SIDES]))
    model, q = _with_cube(replace(model, constraints=()), np.array(q), 0.6, 10.0, (0.6, 0.0, one.posture("home")[2]))
    model, welds = _tied(model, "weld", [(f"{side}_pelvis", "cube") for side in SIDES], q)
    return LoopRobot(model.name, model, (*welds, *loops), q)


def chain_of_loops(loops: int, kind: str = "point") -> LoopRobot:
    """Loops in a row, each of seven links: branches of four and of three on the end of the loop before, tied there.

    42 loops have 294 links. Placements and inertias are those of `delassus.model.generators.chain`.
    """
    links = LINKS_PER_LOOP * loops
    straight = chain(links)
    joints = [replace(joint, kind=Revolute()) for joint in straight.joints]
    for first in range(0, links, LINKS_PER_LOOP):  # the dead end of four comes first, which is depth first
        joints[first + 4] = replace(joints[first + 4], parent=first - 1)
    model = replace(straight, name=f"chain of {loops} loops", joints=tuple(joints))
    q = model.random_configuration(np.random.default_rng(0))
    ends = [(f"link{first + 6}", f"link{first + 3}") for first in range(0, links, LINKS_PER_LOOP)]
    return LoopRobot(model.name, *_tied(model, kind, ends, q), q)


ROBOTS: tuple[Callable[[], LoopRobot], ...] = (
    hand_with_cube,
    two_hands_with_cube,
    humanoid_with_cube,
    biped,
    cassie,
    two_bipeds_with_box,
)


def _hand(side: str) -> dl.Model:
    return dl.load(folder() / HAND.format(side))


def _both_tips() -> list[str]:
    return [f"{side}_{tip}" for side in SIDES for tip in TIPS]


def _on_the_ground(frames: Iterable[str]) -> tuple[Loop, ...]:
    return tuple(Loop("weld", frame, None) for frame in frames)


def _own_loops(model: dl.Model) -> tuple[Loop, ...]:
    """The ties that a model comes with."""
    return tuple(
        Loop("point" if isinstance(tie, Connect) else "weld", tie.frame1, tie.frame2) for tie in model.constraints
    )


def _holding_cube(name: str, model: dl.Model, tips: list[str]) -> LoopRobot:
    """A model in a random configuration within its limits, with a cube amid its fingertips, each tied to it."""
    q = model.random_configuration(np.random.default_rng(0))
    middle = np.mean([M.translation for M in _placements(model, q, tips)], axis=0)
    model, q = _with_cube(replace(model, name=name), q, 0.06, 0.1, middle)
    return LoopRobot(name, *_tied(model, "point", [(tip, "cube") for tip in tips], q), q)


def _with_cube(model: dl.Model, q: Any, side: float, mass: float, at: Any) -> tuple[dl.Model, Any]:
    """A free cube in the same world, upright at a point."""
    cube = Assembly("cube")
    cube.body("cube", Free(), None, parts=[box([side] * 3, mass)])
    world = "world" if "world" in {frame.name for frame in model.frame_list} else "universe"
    return model.attach(cube.model(), world), np.concatenate([q, at, UPRIGHT])


def _tied(model: dl.Model, kind: str, pairs: list[tuple[str, str]], q: Any) -> tuple[dl.Model, tuple[Loop, ...]]:
    """Ties between frames and bodies, which get new frames where the given ones are in the configuration q."""
    frames, loops = list(model.frame_list), []
    placements = iter(_placements(model, q, [name for pair in pairs for name in pair]))
    for k, (frame, body) in enumerate(pairs):
        one, other = next(placements), next(placements)
        inner, on = other.actInv(one), model.frame(body)
        place = on.placement * dl.Placement.of(inner.rotation, inner.translation)
        frames.append(Frame(f"tie{k}", on.joint, place))
        loops.append(Loop(kind, frame, f"tie{k}"))
    return replace(model, frame_list=tuple(frames)), tuple(loops)


def _placements(model: dl.Model, q: Any, frames: Iterable[str]) -> list[pin.SE3]:
    theirs = to_pinocchio(model)
    data = theirs.createData()
    pin.framesForwardKinematics(theirs, data, dl.pinocchio.q_to_pinocchio(model, q))
    return [data.oMf[theirs.getFrameId(frame)] for frame in frames]
