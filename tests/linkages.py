"""Linkages for the tests of closed loops: a tree, what closes it, and a configuration in which it is closed.

Textbook ones are here for what is known of them: mobilities, poses in which rows become dependent, rows that always
are. The random ones need not be closed, since accelerations are defined wherever they are.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import delassus as dl
from delassus.model.bundled.build import Assembly, ball, box, rod
from delassus.model.equality import Connect
from delassus.model.generators import random_tree
from delassus.model.joints import Free, Prismatic, Revolute, Spherical, Universal
from delassus.model.model import Model
from delassus.model.parts import WORLD, Frame
from delassus.model.placement import Placement
from in_pinocchio import Loop
from loop_oracles import close

Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Linkage:
    """A tree and its loops; q (nq,) closes them, but for random ones."""

    name: str
    model: Model
    loops: tuple[Loop, ...]
    q: Any


# --- in the plane -----------------------------------------------------------------------------------------------------


def bundled(name: str, rows: str | None = None) -> Linkage:
    """A robot of the package in its posture "home", with the ties that it comes with, which become loops."""
    model = dl.load(name)
    chosen = None if rows is None else tuple(rows)
    kinds = [("point" if isinstance(tie, Connect) else "weld", tie.frame1, tie.frame2) for tie in model.constraints]
    label = name if rows is None else f"{name} {rows}"
    return Linkage(
        label, replace(model, constraints=()), tuple(Loop(*kind, chosen) for kind in kinds), model.posture("home")
    )


def ladder(windows: int, angle: float = 0.0, kind: str = "point", rows: str | None = None) -> Linkage:
    """Parallelograms in a row, neighbours sharing a crank: bars of 1 m and 1 kg on the ground, which is along x.

    One degree of freedom. At angle 0 [rad] all bars lie on the ground: there every loop loses a row, and each window
    may become an antiparallelogram. Closed by points, of which `rows="xz"` matter in the plane, or by hinges about y.
    """
    a = Assembly(f"ladder of {windows}")
    bar = [rod((0, 0, 0), (1, 0, 0), 1.0)]
    for k in range(windows + 1):
        a.body(f"crank{k}", Revolute(Y), None, (k, 0, 0), bar)
        a.frame(f"pin{k}", f"crank{k}", (1, 0, 0))
        if k < windows:
            a.body(f"rail{k}", Revolute(Y), f"crank{k}", (1, 0, 0), bar)
            a.frame(f"end{k}", f"rail{k}", (1, 0, 0))
    chosen = None if rows is None else tuple(rows)
    loops = tuple(Loop(kind, f"end{k}", f"pin{k + 1}", chosen, axis="y") for k in range(windows))
    q = np.array([angle, -angle] * windows + [angle])
    label = f"{a.name} at {angle:g}, {kind}s {rows or ''}".rstrip()
    return Linkage(label, a.model(), loops, q)


# --- in space ---------------------------------------------------------------------------------------------------------


def ring(name: str, lengths: list[float], twists: list[float], q: list[float], closing: str) -> Linkage:
    """Links between n hinges, of lengths [m] and twists [rad] between their axes; q are their angles [rad].

    The first link hangs on the world. Closed by a weld after the last hinge, or with a hinge in place of the last one.
    """
    n = len(lengths) if closing == "weld" else len(lengths) - 1
    across = [Placement.from_xyz_rpy((a, 0, 0), (alpha, 0, 0)) for a, alpha in zip(lengths, twists, strict=True)]
    assembly = Assembly(f"{name}, {closing}")
    mount = Placement.from_xyz_rpy((0, 0, 1), (0.3, 0.5, 0.0))  # gravity along no axis
    for k in range(n):
        at = mount if k == 0 else across[k - 1]
        parts = [rod((0, 0, 0), (lengths[k], 0, 0), 0.5), ball(0.03, 0.3, (0, 0, 0.02))]
        assembly.body(f"link{k}", Revolute(Z), f"link{k - 1}" if k else None, at, parts)
    assembly.frame("end", f"link{n - 1}", across[n - 1])
    assembly.frame("base", None, mount if closing == "weld" else mount * across[-1].inverse())
    return Linkage(assembly.name, assembly.model(), (Loop(closing, "end", "base"),), np.array(q[:n]))


def bennett(closing: str = "hinge", angle: float = 1.0) -> Linkage:
    """Four hinges that move, since opposite links are equal and a / sin α = b / sin β: 1 degree of freedom, not -2.

    tan(θ₁/2) tan(θ₂/2) = sin((β + α)/2) / sin((β - α)/2), and opposite angles add up to 2π.
    """
    alpha, beta, a = 0.6, 1.3, 0.3
    b = a * math.sin(beta) / math.sin(alpha)
    ratio = math.sin((beta + alpha) / 2) / math.sin((beta - alpha) / 2)
    other = 2 * math.atan(ratio / math.tan(angle / 2))
    angles = [angle, other, -angle, -other]
    return ring("Bennett's linkage", [a, b, a, b], [alpha, beta, alpha, beta], angles, closing)


def bricard(closing: str = "hinge", angle: float = 1.3) -> Linkage:
    """Six hinges of threefold symmetry with twists ±90°, which turn inside out: 1 degree of freedom, not 0.

    cos θ cos φ + cos θ + cos φ = 0 for the angles θ of odd and φ of even hinges.
    """
    other = math.acos(-math.cos(angle) / (1 + math.cos(angle)))
    twists = [math.pi / 2, -math.pi / 2] * 3
    return ring("Bricard's linkage", [0.3] * 6, twists, [angle, other] * 3, closing)


def two_arms(kind: str = "weld") -> Linkage:
    """Two arms of seven joints face each other and hold a box between their tools."""
    arm = replace(dl.load("arm7"), geometries=())
    crate = Assembly("box")
    crate.body("box", Free(), None, parts=[box((0.3, 0.2, 0.2), 2.0)])
    for side, x, turn in (("left", -0.15, math.pi / 2), ("right", 0.15, -math.pi / 2)):
        crate.frame(f"{side}_grip", "box", Placement.from_xyz_rpy((x, 0.02, 0), (0, turn, 0)))
    model = Model("two arms", (), (Frame("world", WORLD),))
    model = model.attach(arm, "world", Placement.of(p=(-0.6, 0, 0)), "left_")
    model = model.attach(arm, "world", Placement.from_xyz_rpy((0.6, 0, 0), (0, 0, math.pi)), "right_")
    model = model.attach(crate.model(), "world")
    loops = tuple(Loop(kind, f"{side}_tool", f"{side}_grip") for side in ("left", "right"))
    arms = [0.1, -0.3, 0.2, 1.6, 0.1, 0.3, 0.0] * 2
    return Linkage(f"two arms, {kind}s", model, loops, close(model, loops, [*arms, 0, 0, 0.7, 0, 0, 0, 1]))


def standing_biped(kind: str = "weld") -> Linkage:
    """The biped with the loops of its knees, both feet on the ground."""
    biped = bundled("biped")
    feet = tuple(Loop(kind, f"{side}_sole", None) for side in ("left", "right"))
    return replace(biped, name=f"biped, feet held by {kind}s", loops=(*biped.loops, *feet))


# --- random -----------------------------------------------------------------------------------------------------------


def random_linkage(seed: int) -> Linkage:
    """A random tree of 3 to 12 joints of many kinds, one to four random ties between its links, and any q.

    Ties are points, welds, hinges about any axis and selections of rows; some go to a frame on the world.
    """
    rng = np.random.default_rng(seed)
    kinds = (Revolute(), Revolute((0.6, 0.0, 0.8)), Prismatic(), Universal(), Spherical(), Free())
    n = int(rng.integers(3, 13))
    tree = random_tree(n, seed)
    chosen = rng.choice(len(kinds), n, p=(0.4, 0.2, 0.1, 0.1, 0.1, 0.1))
    joints = tuple(replace(joint, kind=kinds[k]) for joint, k in zip(tree.joints, chosen, strict=True))
    links = [WORLD, *range(n)]
    frames = tuple(Frame(f"at{i}", i, _random_placement(rng)) for i in links)
    model = Model(f"random linkage {seed}", joints, frames)
    return Linkage(model.name, model, _random_loops(rng, n), model.random_configuration(rng))


def _random_loops(rng: np.random.Generator, n: int) -> tuple[Loop, ...]:
    loops = []
    for _ in range(int(rng.integers(1, 5))):
        one = int(rng.integers(n))
        other = int(rng.choice([i for i in range(WORLD, n) if i != one]))
        kind = str(rng.choice(["point", "weld", "hinge"]))
        axis = str(rng.choice(list("xyz")))
        names = {"point": ("x", "z"), "weld": ("x", "y", "rx", "rz"), "hinge": None}[kind]
        loops.append(Loop(kind, f"at{one}", f"at{other}", names if rng.random() < 0.3 else None, axis))
    return tuple(loops)


def _random_placement(rng: np.random.Generator) -> Placement:
    return Placement.from_xyz_rpy(rng.uniform(-0.3, 0.3, 3), rng.uniform(-3.0, 3.0, 3))


def textbook() -> dict[Linkage, int]:
    """Linkages and their mobilities: velocities less independent rows, in the poses that they are in."""
    return {
        bundled("slider_crank"): 1,
        bundled("four_bar"): 1,
        bundled("four_bar", rows="xz"): 1,
        bundled("five_bar"): 2,
        bundled("delta"): 3,
        bundled("stewart"): 6,
        bundled("biped"): 18,
        standing_biped("weld"): 6,
        standing_biped("point"): 12,
        ladder(1, 0.7): 1,
        ladder(1): 2,
        ladder(2, 0.7): 1,
        ladder(2): 3,
        ladder(5): 6,
        ladder(40): 41,
        ladder(5, 0.7, rows="xz"): 1,
        ladder(2, 0.7, kind="hinge"): 1,
        ladder(2, kind="hinge"): 3,
        bennett("hinge"): 1,
        bennett("weld"): 1,
        bricard("hinge"): 1,
        bricard("weld"): 1,
        two_arms("weld"): 8,
        two_arms("point"): 14,
    }


def mechanism_of(linkage: Linkage) -> dl.Mechanism:
    """A linkage with its loops as constraints."""
    kinds = {"point": dl.Point, "weld": dl.Weld, "hinge": dl.Hinge}
    made = []
    for loop in linkage.loops:
        options = {} if loop.rows is None else {"rows": loop.rows}
        options |= {"axis": loop.axis} if loop.kind == "hinge" else {}
        made.append(kinds[loop.kind](loop.frame1, loop.frame2, **options))
    return dl.Mechanism(linkage.model, made)
