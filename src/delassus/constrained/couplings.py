"""Links that closed loops couple: the inertia between two of them, and the order in which links are eliminated.

A row K_i a_i + K_j a_j with the penalty ρ has the energy ½ ρ (K_i a_i + K_j a_j)², whose mixed part a_jᵀ A_ji a_i,
A_ji = ρ K_jᵀ K_i (6, 6), is the inertia between the links. Each index is in the axes of its own link.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import delassus.numpy as np
from delassus.constraints.rows import Rows
from delassus.dynamics.articulated import FreeJoint
from delassus.dynamics.poses import Blocks, Pose
from delassus.model.links import Links


@dataclass(frozen=True)
class Felt:
    """What the neighbours of an eliminated link feel: A_ji (6, 6) by neighbour, and what their own inertia gains."""

    blocks: dict[int, Any]
    own: dict[int, Blocks]


class Couplings:
    """The blocks A_ji between links that are left; the mirror image A_ij = A_jiᵀ is not kept."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[int, int], Any] = {}

    @classmethod
    def of(cls, rows: Rows, rho: Any) -> Couplings:
        """The blocks of all rows on two links, with their penalties ρ (m,)."""
        made = cls()
        for i, j in sorted(rows.layout.pairs):
            one, other = rows.links[i], rows.links[j]
            shared = [r for r in one.rows if r in other.rows]
            K_i, K_j = (own.K[[own.rows.index(r) for r in shared]] for own in (one, other))
            made.add(j, i, (K_j.T * rho[shared]) @ K_i)
        return made

    def add(self, j: int, i: int, block: Any) -> None:
        """Add to A_ji."""
        key, block = ((j, i), block) if j < i else ((i, j), block.T)
        self.blocks[key] = self.blocks[key] + block if key in self.blocks else block

    def eliminate(self, i: int, joint: FreeJoint, pose: Pose, parent: int) -> tuple[dict[int, Any], Felt]:
        """Take link i out: A_ji S (6, n) of its neighbours j, and what they feel; their couplings are updated."""
        mine = {(set(key) - {i}).pop(): key for key in self.blocks if i in key}
        blocks = {j: self.blocks.pop(key) for j, key in sorted(mine.items())}
        blocks = {j: block if j < i else block.T for j, block in blocks.items()}  # kept as A_jk with j < k
        S = np.concatenate([np.array(x) for x in joint.link.subspace])
        pulled = {j: block @ S for j, block in blocks.items()}
        own: dict[int, Blocks] = {}
        for j, AS in pulled.items():
            pushed = np.stack([joint.push(row) for row in AS])  # A_ji S D⁻¹
            own[j] = _blocks(-(pushed @ AS.T))
            for k, other in pulled.items():
                if k < j:
                    self.add(j, k, -(pushed @ other.T))
            if parent < 0:
                continue
            # A_ji Pᵀ X: its rows travel as forces do.
            left = blocks[j] - AS @ joint.W.T
            felt = np.stack([np.concatenate(pose.force_to_parent(row[:3], row[3:])) for row in left])
            if j == parent:
                own[j] = _sum(own[j], _blocks(felt + felt.T))
            else:
                self.add(j, parent, felt)
        return pulled, Felt(blocks, own)


@lru_cache(maxsize=256)
def elimination_order(tree: Links, pairs: frozenset[tuple[int, int]]) -> tuple[int, ...]:
    """The order in which links are eliminated: always one that carries no other, the one coupled with the fewest.

    Eliminating a link couples all that it was coupled with, and these with its parent. Without loops, and among links
    that are equal, the last comes first.
    """
    neighbours: list[set[int]] = [set() for _ in tree.links]
    for i, j in pairs:
        neighbours[i].add(j)
        neighbours[j].add(i)
    children = [0] * len(tree.links)
    for link in tree.links:
        if link.parent >= 0:
            children[link.parent] += 1
    left = {i for i, count in enumerate(children) if not count}
    order: list[int] = []
    while left:
        i = min(left, key=lambda i: (len(neighbours[i] | {tree.links[i].parent}), -i))
        left.remove(i)
        order.append(i)
        parent = tree.links[i].parent
        others = neighbours[i] | ({parent} if neighbours[i] and parent >= 0 else set())
        for j in others:
            neighbours[j] = (neighbours[j] | others) - {i, j}
        if parent >= 0:
            children[parent] -= 1
            if not children[parent]:
                left.add(parent)
    return tuple(order)


def _blocks(A: Any) -> Blocks:
    return A[:3, :3], A[:3, 3:], A[3:, 3:]


def _sum(A: Blocks, B: Blocks) -> Blocks:
    return A[0] + B[0], A[1] + B[1], A[2] + B[2]
