"""Links that closed loops couple: how they feel each other, and the order in which links are eliminated.

A row K_i a_i + K_j a_j with the penalty ρ has the energy ½ ρ (K_i a_i + K_j a_j)². Its mixed part,

    (K_j a_j)ᵀ C (K_i a_i),   C = diag(ρ),

couples the links. It is kept in this form: each link has a port, the rows K (r, 6) by which it takes part, and C (r, r)
couples ports. Eliminating link i leaves C as it is and hands its port on to its parent, K_π = (K - K S Wᵀ) X, so that a
coupling costs what its rows cost, and not what 6×6 matrices do. What other ports feel of the elimination,

    T_q = C_qp K_p S,   B_q -= T_q D⁻¹ T_qᵀ,   C_qr -= T_q D⁻¹ T_rᵀ,   l_q += C_qp K_p (Pᵀ b + S D⁻¹ u),

is added to their links' inertias, K_qᵀ B_q K_q, and forces, K_qᵀ l_q, when these are eliminated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.constraints.rows import Rows
from delassus.dynamics.articulated import FreeJoint
from delassus.dynamics.poses import Blocks, Pair, Pose, mirrored
from delassus.model.links import Links


@dataclass(frozen=True, eq=False)
class Port:
    """Rows K (r, 6) by which a link takes part in couplings; `number` stays the same when the port is handed on."""

    number: int
    link: int
    K: Any

    def felt(self, a: Pair) -> Any:
        """K a (r,)."""
        return self.K[:, :3] @ a[0] + self.K[:, 3:] @ a[1]

    def exert(self, x: Any) -> Pair:
        """Kᵀ x: force and moment."""
        return self.K[:, :3].T @ x, self.K[:, 3:].T @ x


class Couplings:
    """What couples the links that are left; emptied link by link."""

    def __init__(self, rows: Rows, rho: Any) -> None:
        self.ports: dict[int, Port] = {}
        self.C: dict[tuple[int, int], Any] = {}
        self.B: dict[int, Any] = {}
        self.l: dict[int, Any] = {}
        for i, j in sorted(rows.layout.pairs):
            one, other = rows.links[i], rows.links[j]
            shared = [r for r in one.rows if r in other.rows]
            first, second = (self._new(own.link, own.K[[own.rows.index(r) for r in shared]]) for own in (one, other))
            self._couple(first, second, np.diag(rho[shared]))

    def take(self, i: int) -> tuple[Blocks, Pair] | None:
        """What a link that is about to be eliminated feels of what was eliminated before: inertia and bias force."""
        here = self._on(i)
        if not here:
            return None
        inertia, force = self._folded(here)
        return (mirrored(inertia[:3, :3]), inertia[:3, 3:], mirrored(inertia[3:, 3:])), (force[:3], force[3:])

    def eliminate(self, i: int, joint: FreeJoint, pose: Pose, parent: int, moved: Pair) -> list[tuple[Port, Any]]:
        """Take link i out, which `moved` by Pᵀ b + S D⁻¹ u; ports that felt it, with T_q (r, n)."""
        here = self._merged([port for port in self._on(i) if self._partners(port)])
        partners = {q for port in here for q in self._partners(port)}
        for link in sorted({q.link for q in partners}):
            self._merged(sorted((q for q in partners if q.link == link), key=lambda q: q.number))
        for port in self._on(i):
            del self.ports[port.number]
        T: dict[int, Any] = {}
        left: dict[int, list[Any]] = {}
        for port in here:
            carried = [joint.carry(row[:3], row[3:]) for row in port.K]  # rows travel as forces do
            KS, Km = np.stack([u for u, *_ in carried]), port.felt(moved)
            left[port.number] = [(f, n) for _, f, n in carried]
            for q in self._partners(port):
                C = self._coupling(q, port)
                T[q.number] = T[q.number] + C @ KS if q.number in T else C @ KS
                self.l[q.number] = self.l[q.number] + C @ Km if q.number in self.l else C @ Km
        for number, mine in T.items():
            pushed = np.stack([joint.push(row) for row in mine])  # T D⁻¹
            gained = pushed @ mine.T
            self.B[number] = self.B.get(number, 0.0) - (np.tril(gained) + np.tril(gained, -1).T)
            for other, theirs in T.items():
                if other < number:
                    self._couple(self.ports[number], self.ports[other], -(pushed @ theirs.T))
        for port in here:
            if parent < 0:
                self._forget(port)
                continue
            rows = [np.concatenate(pose.force_to_parent(*row)) for row in left[port.number]]
            self.ports[port.number] = Port(port.number, parent, np.stack(rows))
        return [(self.ports[number], mine) for number, mine in T.items()]

    def _on(self, link: int) -> list[Port]:
        return [port for _, port in sorted(self.ports.items()) if port.link == link]

    def _partners(self, port: Port) -> list[Port]:
        numbers = {n for key in self.C if port.number in key for n in key} - {port.number}
        return [self.ports[n] for n in sorted(numbers) if n in self.ports]

    def _new(self, link: int, K: Any) -> Port:
        number = 1 + max((*self.ports, *(n for key in self.C for n in key)), default=-1)
        port = self.ports[number] = Port(number, link, K)
        return port

    def _coupling(self, one: Port, other: Port) -> Any:
        """C (r of the first, r of the second), None if there is none."""
        if one.number < other.number:
            return self.C.get((one.number, other.number))
        mirrored = self.C.get((other.number, one.number))
        return None if mirrored is None else mirrored.T

    def _couple(self, one: Port, other: Port, C: Any) -> None:
        """Add to C."""
        if one.number > other.number:
            one, other, C = other, one, C.T
        key = (one.number, other.number)
        self.C[key] = self.C[key] + C if key in self.C else C

    def _uncouple(self, one: Port, other: Port) -> Any:
        """C, which is taken out."""
        C = self._coupling(one, other)
        self.C.pop((min(one.number, other.number), max(one.number, other.number)), None)
        return C

    def _forget(self, port: Port) -> None:
        for key in [key for key in self.C if port.number in key]:
            del self.C[key]

    def _merged(self, ports: list[Port]) -> list[Port]:
        """Ports of a link; one of all six directions in their stead, where they have more rows than that."""
        if sum(len(port.K) for port in ports) <= 6:
            return ports
        whole = self._new(ports[0].link, np.array(np.eye(6)))
        self.B[whole.number], self.l[whole.number] = self._folded(ports)
        for port in ports:
            for q in self._partners(port):
                self._couple(whole, q, port.K.T @ self._uncouple(port, q))
            del self.ports[port.number]
        return [whole]

    def _folded(self, ports: list[Port]) -> tuple[Any, Any]:
        """What ports of one link have felt, and what couples them with each other, as inertia (6, 6) and force (6,)."""
        inertia, force = np.zeros((6, 6)), np.zeros(6)
        for k, port in enumerate(ports):
            if port.number in self.B:
                inertia = inertia + port.K.T @ self.B.pop(port.number) @ port.K
                force = force + port.K.T @ self.l.pop(port.number)
            for other in ports[:k]:
                C = self._uncouple(port, other)
                if C is not None:  # a loop that is closed
                    half = port.K.T @ C @ other.K
                    inertia = inertia + half + half.T
        return inertia, force


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
