"""A square root of the inverse mass matrix along the tree, M⁻¹ = R Rᵀ; computes J R, R⁻¹ x and R x without forming R.

The articulated-body recursion is a factorization of M: the accelerations ν = q̈ + Wᵀ X a_π that a joint has beyond what
its link's inertia lets it have by itself, weighted by its articulated inertia D, make up the kinetic metric,

    aᵀ M a = Σ νᵀ D ν.      With D = L d Lᵀ at every joint,   x = d^½ Lᵀ ν   is   x = Rᵀ M a = R⁻¹ a.

A row of J travels inward as a force does, and leaves (J R)_i = d^-½ L⁻¹ (K S)_i at every joint on its way; a
generalized force leaves Rᵀ h in the same manner, and an outward sweep gives a = R x. O(d) operations a row for depth d,
and O(n) for each of the others.

Joints that share coordinates (mimicry) have no such recursion: there the sparse factors M = U D Uᵀ have the same three.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map
from delassus.constrained.elimination.articulated_tree import ArticulatedTree
from delassus.constrained.elimination.elimination import eliminate_joints
from delassus.constrained.elimination.row_forces import Piece, pieces_of
from delassus.constrained.elimination.tree_factor import tree_factor
from delassus.constrained.rows.problem import Problem
from delassus.constraints.basis.motions import LinkMotions
from delassus.dynamics.mass.factor import backward, forward
from delassus.dynamics.tree.poses import Pair
from delassus.dynamics.tree.sums import total
from delassus.dynamics.tree.sweep import ZERO
from delassus.model.links import links_of
from delassus.model.parts import WORLD


class Root(NamedTuple):
    """J R (m, nv), and the functions h → Rᵀ h and x → R x of vectors (nv,)."""

    rows: Any
    of_forces: Callable[[Any], Any]
    to_accelerations: Callable[[Any], Any]


class RootBuilder(NamedTuple):
    """How a root is made: from numbers of a state that a loop can carry, by a function of them.

    What a loop's body computes from anything else is computed before the loop, whether it begins or not.
    """

    numbers: tuple[Any, ...]
    root: Callable[..., Root]


def build_root(problem: Problem, J: Any, moving: list[list[int]]) -> RootBuilder:
    """The root for a problem with the rows J (m, nv), of which `moving` says what entries are not zero."""
    if links_of(problem.model).mimics:
        return _by_sparse_factors(problem, J, moving)
    motions = problem.motions
    # At rest, which makes the same joints: those that `aba` has.
    body, _ = eliminate_joints(LinkMotions.of(problem.model, motions.q, np.zeros(problem.model.nv)), problem.rows)
    pieces = pieces_of(motions.tree, problem.rows)
    pivots = np.concatenate([joint.D.inverse for joint in body.joints])
    parts = [np.concatenate(piece.force) if piece.driven is None else np.array(piece.driven) for piece in pieces]
    ends = numpy.cumsum([len(part) for part in parts])

    def root(pivots: Any, entries: Any) -> Root:
        own = [entries[end - len(part) : end] for part, end in zip(parts, ends, strict=True)]
        some = [
            replace(piece, force=(x[:3], x[3:])) if piece.driven is None else replace(piece, driven=x)
            for piece, x in zip(pieces, own, strict=True)
        ]
        tree = _TreeRoot(body, np.sqrt(pivots))
        return Root(problem.active(tree.rows(some, problem.rows.m)), tree.of_forces, tree.to_accelerations)

    return RootBuilder((pivots, np.concatenate(parts)), root)


def _by_sparse_factors(problem: Problem, J: Any, moving: list[list[int]]) -> RootBuilder:
    places = [(r, k) for r, dofs in enumerate(moving) for k in dofs]

    def root(q: Any, entries: Any) -> Root:
        again = np.zeros(J.shape)
        for place, entry in zip(places, entries, strict=True):
            again[place] = entry
        tree = tree_factor(problem.model, q, again)
        size = np.sqrt(tree.D)
        return Root(
            tree.Y * size,
            lambda h: backward(tree.above, tree.U, h) / size,
            lambda x: forward(tree.above, tree.U, x / size),
        )

    return RootBuilder((problem.motions.q, np.stack([J[place] for place in places])), root)


@dataclass(frozen=True)
class _TreeRoot:
    """The joints of a tree, and d^-½ of all of them (nv,)."""

    body: ArticulatedTree
    scale: Any

    def rows(self, pieces: list[Piece], m: int) -> Any:
        """J R (m, nv), from the parts of the rows.

        Rows of one link that take part in nothing else go the same way: one loop for all of them, which keeps the code
        small. Parts of one row that meet on a link go on as one.
        """
        B = np.zeros((m, len(self.scale)))
        for link, alike in _alike(pieces).items():
            dofs = [v for i in reversed(self.body.tree.path(link)) for v in self.body.tree.links[i].dofs]
            result = map(partial(self._along, link), np.stack([np.concatenate(piece.force) for piece in alike]))
            for piece, row in zip(alike, result, strict=True):
                B[piece.row, dofs] = row
            rows = {piece.row for piece in alike}
            pieces = [piece for piece in pieces if piece.row not in rows]
        return self._expand_pieces(pieces, B)

    def _along(self, link: int, force: Any) -> Any:
        """Components of a force (6,) on a link at the joints that carry it, from the link inward."""
        left, f = [], (force[:3], force[3:])
        for i in reversed(self.body.tree.path(link)):
            u, f = self.body.inward(i, *f)
            left.append(self.scale[self.body.joints[i].at] * self.body.joints[i].D.half(u))
        return np.concatenate(left)

    def _expand_pieces(self, pieces: list[Piece], B: Any) -> Any:
        """J R (m, nv) with the rows of some pieces, one by one, besides what is there."""
        tree = self.body.tree
        waiting: list[dict[int, Pair]] = [{} for _ in tree.links]
        driven: list[dict[int, Any]] = [{} for _ in tree.links]
        for piece in pieces:
            here, at_joint = waiting[piece.link], driven[piece.link]
            here[piece.row] = total(here.get(piece.row, ZERO), piece.force)
            if piece.driven is not None:
                at_joint[piece.row] = at_joint.get(piece.row, 0.0) + piece.driven
        for i in reversed(range(len(tree.links))):
            at = self.body.joints[i].at
            for r, force in waiting[i].items():
                u, passed = self.body.inward(i, *force, driven[i].get(r))
                B[r, at] = self.scale[at] * self.body.joints[i].D.half(u)
                parent = tree.links[i].parent
                if parent != WORLD:
                    waiting[parent][r] = total(waiting[parent][r], passed) if r in waiting[parent] else passed
        return B

    def of_forces(self, h: Any) -> Any:
        """Rᵀ h (nv,)."""
        x = np.zeros(len(self.scale))
        force: dict[int, Pair] = {}
        for i, link in reversed(list(enumerate(self.body.tree.links))):
            joint = self.body.joints[i]
            u, passed = self.body.inward(i, *force.get(i, ZERO), h[joint.at])
            x[joint.at] = self.scale[joint.at] * joint.D.half(u)
            if link.parent != WORLD:
                force[link.parent] = total(force.get(link.parent, ZERO), passed)
        return x

    def to_accelerations(self, x: Any) -> Any:
        """R x (nv,)."""
        push = np.zeros(len(x))
        for joint in self.body.joints:
            push[joint.at] = joint.D.other_half(self.scale[joint.at] * x[joint.at])
        return self.body.accelerations(push, range(len(self.body.joints)))[1]


def _alike(pieces: list[Piece]) -> dict[int, list[Piece]]:
    """By link, the rows that act on it alone, where there are several."""
    count = Counter(piece.row for piece in pieces)
    alike: dict[int, list[Piece]] = {}
    for piece in pieces:
        if count[piece.row] == 1 and piece.driven is None:
            alike.setdefault(piece.link, []).append(piece)
    return {link: own for link, own in alike.items() if len(own) > 1}
