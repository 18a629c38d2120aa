"""A square root of the inverse mass matrix along the tree, M⁻¹ = R Rᵀ; computes J R, R⁻¹ x and R x without forming R.

The articulated-body recursion is a factorization of M. Let ν = q̈ + Wᵀ X a_π be the difference of a joint's
acceleration from the one it would have if only its parent moved. Weighted by the articulated inertia D, these make up
the kinetic metric,

    aᵀ M a = Σ νᵀ D ν.      With D = L d Lᵀ at every joint,   x = d^½ Lᵀ ν   is   x = Rᵀ M a = R⁻¹ a.

A row of J is propagated inward like a force, with the component (J R)_i = d^-½ L⁻¹ (K S)_i at every joint of its path;
a generalized force gives Rᵀ h in the same manner, and an outward sweep computes a = R x. O(d) operations for a row at
depth d, and O(n) for each of the others.

Mimic joints have no such recursion; the sparse factors M = U D Uᵀ then provide the same three operations.
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
    """Builds a root from values of a state that a loop can carry.

    If the body of a loop used other values, the compiler would compute them before the loop, even if it is skipped.
    """

    numbers: tuple[Any, ...]
    root: Callable[..., Root]


def build_root(problem: Problem, J: Any, moving: list[list[int]]) -> RootBuilder:
    """The root for a problem with the rows J (m, nv), whose nonzero entries are given by `moving`."""
    if links_of(problem.model).mimics:
        return _by_sparse_factors(problem, J, moving)
    motions = problem.motions
    # At rest; the joints are those of `aba`.
    body, _ = eliminate_joints(LinkMotions.of(problem.model, motions.q, np.zeros(problem.model.nv)), problem.rows)
    pieces = pieces_of(motions.tree, problem.rows)
    pivots = np.concatenate([joint.D.inverse for joint in body.joints])
    parts = [np.concatenate(piece.force) if piece.driven is None else np.array(piece.driven) for piece in pieces]
    offsets = numpy.cumsum([len(part) for part in parts])

    def root(pivots: Any, entries: Any) -> Root:
        row_entries = [entries[end - len(part) : end] for part, end in zip(parts, offsets, strict=True)]
        nonzeros = [
            replace(piece, force=(x[:3], x[3:])) if piece.driven is None else replace(piece, driven=x)
            for piece, x in zip(pieces, row_entries, strict=True)
        ]
        tree = _TreeRoot(body, np.sqrt(pivots))
        return Root(problem.active(tree.rows(nonzeros, problem.rows.m)), tree.of_forces, tree.to_accelerations)

    return RootBuilder((pivots, np.concatenate(parts)), root)


def _by_sparse_factors(problem: Problem, J: Any, moving: list[list[int]]) -> RootBuilder:
    positions = [(r, k) for r, dofs in enumerate(moving) for k in dofs]

    def root(q: Any, entries: Any) -> Root:
        again = np.zeros(J.shape)
        for position, entry in zip(positions, entries, strict=True):
            again[position] = entry
        tree = tree_factor(problem.model, q, again)
        size = np.sqrt(tree.D)
        return Root(
            tree.Y * size,
            lambda h: backward(tree.above, tree.U, h) / size,
            lambda x: forward(tree.above, tree.U, x / size),
        )

    return RootBuilder((problem.motions.q, np.stack([J[position] for position in positions])), root)


@dataclass(frozen=True)
class _TreeRoot:
    """The joints of a tree, and d^-½ of all of them (nv,)."""

    body: ArticulatedTree
    scale: Any

    def rows(self, pieces: list[Piece], m: int) -> Any:
        """J R (m, nv), from the pieces of the rows.

        Rows of one link that have no other piece share a path, so one loop serves all of them, which keeps the code
        small. Pieces of one row that meet on a link are added and continue as one.
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
        components, f = [], (force[:3], force[3:])
        for i in reversed(self.body.tree.path(link)):
            u, f = self.body.inward(i, *f)
            components.append(self.scale[self.body.joints[i].at] * self.body.joints[i].D.half(u))
        return np.concatenate(components)

    def _expand_pieces(self, pieces: list[Piece], B: Any) -> Any:
        """J R (m, nv) with the rows of `pieces` added one by one."""
        tree = self.body.tree
        waiting: list[dict[int, Pair]] = [{} for _ in tree.links]
        driven: list[dict[int, Any]] = [{} for _ in tree.links]
        for piece in pieces:
            link_pieces, at_joint = waiting[piece.link], driven[piece.link]
            link_pieces[piece.row] = total(link_pieces.get(piece.row, ZERO), piece.force)
            if piece.driven is not None:
                at_joint[piece.row] = at_joint.get(piece.row, 0.0) + piece.driven
        for i in reversed(range(len(tree.links))):
            at = self.body.joints[i].at
            for r, force in waiting[i].items():
                u, parent_force = self.body.inward(i, *force, driven[i].get(r))
                B[r, at] = self.scale[at] * self.body.joints[i].D.half(u)
                parent = tree.links[i].parent
                if parent != WORLD:
                    waiting[parent][r] = (
                        total(waiting[parent][r], parent_force) if r in waiting[parent] else parent_force
                    )
        return B

    def of_forces(self, h: Any) -> Any:
        """Rᵀ h (nv,)."""
        x = np.zeros(len(self.scale))
        force: dict[int, Pair] = {}
        for i, link in reversed(list(enumerate(self.body.tree.links))):
            joint = self.body.joints[i]
            u, parent_force = self.body.inward(i, *force.get(i, ZERO), h[joint.at])
            x[joint.at] = self.scale[joint.at] * joint.D.half(u)
            if link.parent != WORLD:
                force[link.parent] = total(force.get(link.parent, ZERO), parent_force)
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
    return {link: link_pieces for link, link_pieces in alike.items() if len(link_pieces) > 1}
