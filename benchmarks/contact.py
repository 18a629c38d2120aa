"""Contact problems against Pinocchio's solvers, on the same matrices, to the same residual."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pinocchio as pin

import delassus as dl
from benchmarks.timing import best_of_each

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from contact_oracle import residual
from contact_problems import random_problems

BATCH: Final = {4: 2048, 12: 512, 40: 64}
TOLERANCE: Final = 1e-8


class Peer:
    """One of Pinocchio's solvers, with everything that can be made beforehand made beforehand."""

    def __init__(self, name: str, problems: dict[str, Any], iterations: int) -> None:
        settings, solver, result = {
            "ADMM": (pin.ADMMSolverSettings, pin.ADMMConstraintSolver, pin.ADMMSolverResult),
            "PGS": (pin.PGSSolverSettings, pin.PGSConstraintSolver, pin.PGSSolverResult),
        }[name]
        self.settings, self.solver, self.kind = settings(), solver(), result
        for limit in ("absolute_feasibility_tol", "absolute_complementarity_tol"):
            setattr(self.settings, limit, TOLERANCE)
        for limit in ("relative_feasibility_tol", "relative_complementarity_tol"):
            setattr(self.settings, limit, 0.0)
        self.settings.max_iterations, self.settings.solve_ncp = iterations, True
        model = pin.Model()
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "body")
        model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
        data = pin.Data(model)
        self.problems = []
        for G, g, friction in zip(problems["G"], problems["g"], problems["friction"], strict=True):
            models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
            for mu in friction:
                contact = pin.PointContactConstraintModel(model, joint)
                contact.setFriction(float(mu))
                models.append(pin.ConstraintModel(contact))
                datas.append(models[-1].createData())
                models[-1].calc(model, data, datas[-1])
            self.problems.append((G.copy(), g.copy(), models, datas))

    def solve(self, k: int) -> tuple[bool, Any, float]:
        """Whether it has converged, the impulses, and how many seconds it took."""
        G, g, models, datas = self.problems[k]
        result = self.kind()
        start = time.perf_counter()
        converged = self.solver.solve(pin.DelassusOperatorDense(G), g, models, datas, self.settings, result)
        seconds = time.perf_counter() - start
        return converged, result.retrieveConstraintImpulses(), seconds


def feet(contacts: int, count: int) -> dict[str, Any]:
    """Robots that stand: the bundled ones with points at their feet, at random states."""
    name, frames = ("quadruped", 4) if contacts == 4 else ("humanoid", contacts)
    robot = dl.load(name)
    rng = np.random.default_rng(0)
    points = [dl.Point(f, axes="world") for f in robot.frames("*foot*")][:frames]
    q = np.array([robot.random_configuration(rng) for _ in range(count)])
    v = rng.normal(size=(count, robot.nv))
    mechanism = dl.Mechanism(robot, points)
    J = dl.constraint_jacobian(mechanism, q)
    return {
        "G": dl.delassus_matrix(mechanism, q),
        "g": np.einsum("bij,bj->bi", J, v),
        "friction": np.full((count, len(points)), 0.7),
    }


def bodies(contacts: int, count: int) -> dict[str, Any]:
    """Bodies that touch each other and the ground at random places; a body has three contacts on average."""
    found = random_problems(1, count, contacts, bodies=max(1, contacts // 3), mass_ratio=10.0, friction=(0.2, 1.0))
    return {"G": found.G, "g": found.g, "friction": found.friction}


def stack(contacts: int, count: int) -> dict[str, Any]:
    """Cubes on top of each other, at rest but for random pushes; four contacts in each interface."""
    floors = contacts // 4
    J = np.zeros((floors, 4, 3, 6 * floors))
    for k in range(floors):
        for corner, (x, y) in enumerate([(-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)]):
            for body, sign, z in ((k, 1.0, -0.5), (k - 1, -1.0, 0.5)):
                if body >= 0:
                    arm = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
                    J[k, corner, :, 6 * body : 6 * body + 6] = sign * np.hstack([np.eye(3), -arm])
    rows, rng = J.reshape(12 * floors, 6 * floors), np.random.default_rng(0)
    inverse = np.tile([1.0, 1.0, 1.0, 6.0, 6.0, 6.0], floors)
    free = np.tile([0.0, 0.0, -0.0981, 0.0, 0.0, 0.0], floors) + 0.02 * rng.normal(size=(count, 6 * floors))
    G = np.broadcast_to((rows * inverse) @ rows.T, (count, 12 * floors, 12 * floors))
    return {"G": np.array(G), "g": free @ rows.T, "friction": np.full((count, contacts), 0.5)}


FAMILIES: Final[dict[str, tuple[Callable[[int, int], dict[str, Any]], tuple[int, ...]]]] = {
    "feet": (feet, (4,)),
    "bodies": (bodies, (4, 12, 40)),
    "stack": (stack, (4, 12, 40)),
}


def _row(name: str, make: Callable[[int, int], dict[str, Any]], contacts: int) -> str:
    count = BATCH[contacts]
    problems = make(contacts, count)
    G, g, friction = problems["G"], problems["g"], problems["friction"]
    problem = dl.ContactProblem(G, g, friction=friction, check=False)
    some = range(min(count, 24))
    seconds = best_of_each({"batch": problem.solve}, repeat=3)
    ones = [problem[k] for k in some]
    single = np.median([best_of_each({"one": one.solve}, repeat=5)["one"] for one in ones])
    solution = problem.solve()
    ours = max(residual(G[k], g[k], friction[k], solution.impulse[k]) for k in some)
    cells = [
        f"{1e6 * seconds['batch'] / count:.1f}",
        f"{1e6 * single:.1f}",
        f"{np.mean(solution.status == 0):.3f}",
        f"{ours:.0e}",
    ]
    cells.append("/".join(f"{x:.0f}" for x in np.percentile(solution.iterations, [50, 90, 100])))
    for peer_name in ("ADMM", "PGS"):
        peer = Peer(peer_name, problems, 20_000 if contacts < 40 else 3000)
        runs = [min((peer.solve(k) for _ in range(3)), key=lambda run: run[2]) for k in some]
        times = np.array([run[2] for run in runs])
        theirs = np.median([residual(G[k], g[k], friction[k], run[1]) for k, run in zip(some, runs, strict=True)])
        solved = np.mean([run[0] for run in runs])
        ratios = f"{np.median(times) / (seconds['batch'] / count):.0f}× / {np.median(times) / single:.1f}×"
        cells += [f"{1e6 * np.median(times):.0f}", f"{solved:.2f}", f"{theirs:.0e}", ratios]
    return f"| {name} | {contacts} | {' | '.join(cells)} |"


def run() -> str:
    """Times, residuals and ratios, as Markdown."""
    dl.threads(1)
    try:
        rows = [_row(name, make, n) for name, (make, counts) in FAMILIES.items() for n in counts]
    finally:
        dl.threads(None)
    return f"""### Contact problems

`ContactProblem.solve()` (Signorini and Coulomb, tolerance {TOLERANCE:g}) against `pin.ADMMConstraintSolver` and
`pin.PGSConstraintSolver` to {TOLERANCE:g}, absolute, on the same G, g and friction, one thread. The first
columns are for Delassus: µs for a problem of a batch, and for a single problem (median of 24); the fraction of solved
problems, the largest residual of 24 [m/s], and iterations (median, 90 %, maximum). The other columns are for Pinocchio:
the median time, the fraction of solved problems, the median residual, and the ratios of this time to the two times of
Delassus. "Feet" are those of the quadruped, "bodies" have contacts at random points, and "stacks" are cubes with four
contacts between two neighbors.

| problems | contacts | batch | alone | solved | residual | made | ADMM | solved | residual | ratios | PGS | solved | residual | ratios |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""  # noqa: E501


if __name__ == "__main__":
    print(run())
