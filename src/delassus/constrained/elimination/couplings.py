"""Couplings of links by closed loops and by rows on several joints, and their elimination.

A row K_i a_i + K_j a_j with the penalty ρ has the energy ½ ρ (K_i a_i + K_j a_j)². Its mixed term,

    (K_j a_j)ᵀ C (K_i a_i),   C = diag(ρ),

couples the links. It is kept in this factored form: each link has a port, the rows K (r, 6) by which it takes part, and
C (r, r) couples ports. Eliminating link i leaves C unchanged and passes its port to its parent, K_π = (K - K S Wᵀ) X.
So the cost of a coupling depends on its number of rows, without 6×6 matrices. The effect of the elimination on other
ports,

    T_q = C_qp K_p S,   B_q -= T_q D⁻¹ T_qᵀ,   C_qr -= T_q D⁻¹ T_rᵀ,   l_q += C_qp K_p (Pᵀ b + S D⁻¹ u),

is added to the inertias of their links, K_qᵀ B_q K_q, and to the forces, K_qᵀ l_q, when these are eliminated.

A row on joints, y = Σ_i (F_i q̈_i + K_i a_i) over any number of links, is a tie: a port with a part on each of them,
and the energy ½ yᵀ B y + lᵀ y, initially with B = ρ and -l the force of the row. On link i, a = X a_π + b is the
acceleration without that of the joint, and x = q̈_i + Wᵀ a - D⁻¹ u is the contribution of ties to the joint
acceleration of the tree recursion. It has the energy ½ xᵀ D x and occurs in no other term of the link's own energy. The
link's part of y is

    K a + V q̈_i = (K - V Wᵀ) a + V (x + D⁻¹ u),   V = K S + F,

so the tie passes K_π = (K - V Wᵀ) X to the parent, as a port does, and only x remains to be eliminated. With T_q = C_qp
V_p for all ports q coupled with p, including p itself (C_pp = B_p), x is eliminated by

    l_q += C_qp (K_p - V_p Wᵀ) b,   D += V_pᵀ T_p,   D⁻¹ u := D⁻¹ (u - V_pᵀ l_p),   l_q += T_q D⁻¹ u

in this order, summed over the ports p of the link, and B_q and C_qr as above. W, and the loads of the link on its
parent, stay those of the joint without ties. When all parts of a tie have reached the same link, it becomes a port of
that link.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import delassus.numpy as np
from delassus.constrained.elimination.ports import Bonds, Part, PartialTie, Port, ties_of
from delassus.constraints.mechanism.rows import Rows
from delassus.dynamics.tree.articulated import FreeJoint
from delassus.dynamics.tree.poses import Blocks, Pair, Pose
from delassus.linalg.products import mirror
from delassus.model.links import Links


class Couplings:
    """Couplings of the remaining links; updated as links are eliminated."""

    def __init__(self, tree: Links, rows: Rows, rho: Any, force: Any = None) -> None:
        """Create from penalties ρ (m,) on the rows; `force` (m,), if given, are the forces of ties."""
        self.ports: dict[int, Port] = {}
        self.ties = ties_of(tree, rows)
        self.C: dict[tuple[int, int], Any] = {}
        self.B: dict[int, Any] = {row: np.diag(rho[[row]]) for row in self.ties}
        self.l: dict[int, Any] = {row: np.zeros(1) if force is None else -force[[row]] for row in self.ties}
        on = rows.untied.links
        for i, j in sorted(pair for pair in rows.layout.pairs if on.keys() >= set(pair)):
            shared = [r for r in on[i].rows if r in on[j].rows]
            if shared:
                one, other = (self._new(k, on[k].K[[on[k].rows.index(r) for r in shared]]) for k in (i, j))
                self._couple(one.number, other.number, np.diag(rho[shared]))

    def touch(self, i: int) -> bool:
        """Whether link i has couplings."""
        return bool(self._on(i)) or any(i in parts for parts in self.ties.values())

    def take(self, i: int) -> tuple[Blocks, Pair] | None:
        """Take the inertia and bias force that earlier eliminations add to the next link."""
        link_ports = self._on(i)
        if not link_ports:
            return None
        inertia, force = self._fold_ports(link_ports)
        return (mirror(inertia[:3, :3]), inertia[:3, 3:], mirror(inertia[3:, 3:])), (force[:3], force[3:])

    def eliminate(
        self, i: int, joint: FreeJoint, pose: Pose, u: Any, push: Any, still: Pair
    ) -> tuple[FreeJoint, Any, Bonds]:
        """Eliminate link i: returns its joint, D⁻¹ u (n,) with the D of its ties, and its couplings.

        `u` (n,) is the force at the joint, `push` D⁻¹ u without ties, and `still` the link's acceleration for zero
        accelerations of its parent and its joint.
        """
        ties = {row: parts[i] for row, parts in sorted(self.ties.items()) if i in parts}
        joint_acceleration = joint.answer(np.zeros(len(u)) if ties else push, still)
        link_acceleration = joint.accelerate(still, joint_acceleration)
        parts_here = {port.number: Part(port.K) for port in self._coupled_ports(i)} | ties
        self._merge_partners(i, parts_here)
        V: dict[int, Any] = {}
        T: dict[int, Any] = {}
        transmitted: dict[int, list[Pair]] = {}
        for number, (K, F) in parts_here.items():
            propagated = [joint.carry(row[:3], row[3:], F) for row in K]  # rows transform like forces
            V[number], transmitted[number] = (
                np.stack([along for along, *_ in propagated]),
                [(f, n) for _, f, n in propagated],
            )
            value = K[:, :3] @ link_acceleration[0] + K[:, 3:] @ link_acceleration[1]
            value = value if F is None else value + F @ joint_acceleration
            for q in [*([number] if number in ties else []), *self._partners(number)]:
                C = self._coupling(q, number)
                T[q] = T[q] + C @ V[number] if q in T else C @ V[number]
                self.l[q] = self.l[q] + C @ value if q in self.l else C @ value
        if ties:
            shared = [number for number in parts_here if number in T]
            joint = joint.with_stiffness(sum(V[number].T @ T[number] for number in shared))
            push = joint.push(u - sum(V[number].T @ self.l[number] for number in shared))
            self.l |= {number: self.l[number] + T_number @ push for number, T_number in T.items()}
        for number, T_number in T.items():
            weighted = np.stack([joint.push(row) for row in T_number])  # T D⁻¹
            T_product = weighted @ T_number.T
            self.B[number] = self.B.get(number, 0.0) - (np.tril(T_product) + np.tril(T_product, -1).T)
            for other, T_other in T.items():
                if other < number:
                    self._couple(number, other, -(weighted @ T_other.T))
        for number in parts_here:
            self._hand_on(number, i, joint.link.parent, pose, transmitted[number])
        remaining = self.ports.keys() | self.ties.keys()
        partners = tuple((self.ports.get(number, number), T[number]) for number in T if number in remaining)
        loose = tuple(
            PartialTie(row, V[row], np.concatenate(transmitted[row][0])[None], self.ports.get(row)) for row in ties
        )
        return joint, push, Bonds(partners, loose)

    def _hand_on(self, number: int, i: int, parent: int, pose: Pose, forces: list[Pair]) -> None:
        """Pass the remaining part of a port or a tie to the parent of the eliminated link i."""
        parts = {link: part for link, part in self.ties.pop(number, {}).items() if link != i}
        self.ports.pop(number, None)
        if parent >= 0:
            K = np.stack([np.concatenate(pose.force_to_parent(*row)) for row in forces])
            old = parts.get(parent)
            parts[parent] = Part(K) if old is None else Part(old.K + K, old.F)
        if not parts:
            self._forget(number)
        elif len(parts) == 1 and all(part.F is None for part in parts.values()):
            ((link, part),) = parts.items()
            self.ports[number] = Port(number, link, part.K)
        else:
            self.ties[number] = parts

    def _coupled_ports(self, i: int) -> list[Port]:
        """The ports of link i that are coupled with others; ports without couplings are dropped."""
        ports = self._merge_ports([port for port in self._on(i) if self._partners(port.number)])
        for port in self._on(i):
            if port not in ports:
                del self.ports[port.number]
        return ports

    def _on(self, link: int) -> list[Port]:
        return [port for _, port in sorted(self.ports.items()) if port.link == link]

    def _partners(self, number: int) -> list[int]:
        numbers = {n for key in self.C if number in key for n in key} - {number}
        return sorted(n for n in numbers if n in self.ports or n in self.ties)

    def _new(self, link: int, K: Any) -> Port:
        number = 1 + max((*self.ports, *self.ties, *(n for key in self.C for n in key)), default=-1)
        port = self.ports[number] = Port(number, link, K)
        return port

    def _coupling(self, one: int, other: int) -> Any:
        """C (r of the first, r of the second); B of a port with itself; None if there is none."""
        if one == other:
            return self.B[one]
        if one < other:
            return self.C.get((one, other))
        mirrored = self.C.get((other, one))
        return None if mirrored is None else mirrored.T

    def _couple(self, one: int, other: int, C: Any) -> None:
        """Add to C."""
        if one > other:
            one, other, C = other, one, C.T
        key = (one, other)
        self.C[key] = self.C[key] + C if key in self.C else C

    def _uncouple(self, one: int, other: int) -> Any:
        """Remove C and return it."""
        C = self._coupling(one, other)
        self.C.pop((min(one, other), max(one, other)), None)
        return C

    def _forget(self, number: int) -> None:
        for key in [key for key in self.C if number in key]:
            del self.C[key]
        self.B.pop(number, None)
        self.l.pop(number, None)

    def _merge_partners(self, i: int, numbers: Iterable[int]) -> None:
        """Merge the ports of every other link that are coupled with link i."""
        partners = {n for number in numbers for n in self._partners(number)}
        ports = [self.ports[n] for n in sorted(partners) if n in self.ports and self.ports[n].link != i]
        for link in sorted({port.link for port in ports}):
            self._merge_ports([port for port in ports if port.link == link])

    def _merge_ports(self, ports: list[Port]) -> list[Port]:
        """Ports of a link; replaced by one port of all six directions if they have more than six rows."""
        if sum(len(port.K) for port in ports) <= 6:
            return ports
        merged = self._new(ports[0].link, np.array(np.eye(6)))
        self.B[merged.number], self.l[merged.number] = self._fold_ports(ports)
        for port in ports:
            for q in self._partners(port.number):
                self._couple(merged.number, q, port.K.T @ self._uncouple(port.number, q))
            del self.ports[port.number]
        return [merged]

    def _fold_ports(self, ports: list[Port]) -> tuple[Any, Any]:
        """Accumulated loads on the ports of one link, and their mutual couplings, as inertia (6, 6) and force (6,)."""
        inertia, force = np.zeros((6, 6)), np.zeros(6)
        for k, port in enumerate(ports):
            if port.number in self.B:
                inertia = inertia + port.K.T @ self.B.pop(port.number) @ port.K
                force = force + port.K.T @ self.l.pop(port.number)
            for other in ports[:k]:
                C = self._uncouple(port.number, other.number)
                if C is not None:  # a closed loop
                    half = port.K.T @ C @ other.K
                    inertia = inertia + half + half.T
        return inertia, force
