"""What keeps a constrained robot on its constraints: a four-bar that swings for 10 s, with six ways to treat drift.

Accelerations meet the constraints exactly, and still, positions and velocities that are summed up from them drift away.
The robot is stepped forward by the Taylor step of S. Savin's lecture (Contact-aware control, lecture 5, eq. 4), and
after each step it is left as it is, or corrected:

    no correction          the drift
    Baumgarte              a spring and damper along the constraints, in the equations
    velocities             v = N Nᵀ v_e: what the constraints allow of the estimate (eq. 14)
    SVD at the last q      q = (1 - N Nᵀ)(q₀ - F⁺ g₀) + N Nᵀ q_e, linearised at q₀, where the last step began (eq. 20)
    SVD at the estimate    the same with q₀ = q_e: q = q_e - F⁺ g(q_e)
    metric of M            dl.project: the least motion, measured by the mass matrix, to a tolerance

F is the Jacobian, N its null space; all but the first two project velocities as well. Run it with
`python examples/drift.py`; the picture goes to docs/images.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import delassus as dl

SECONDS, STEP, RATE = 10.0, 2e-3, 20.0  # s, s, 1/s: how fast Baumgarte takes errors off
OUTPUT = Path(__file__).parent.parent / "docs" / "images"
ROBOT = dl.Mechanism(dl.load("four_bar"))


def split(q):
    """F⁺ and N Nᵀ at a configuration, by one singular value decomposition; rows may repeat each other."""
    U, s, Vt = np.linalg.svd(dl.constrained.constraint_jacobian(ROBOT, q))
    rank = int(np.sum(s > 1e-10 * s[0]))
    return Vt[:rank].T @ np.diag(1.0 / s[:rank]) @ U[:, :rank].T, Vt[rank:].T @ Vt[rank:]


def error(q):
    """g(q) [m]."""
    return dl.constrained.constraint_error(ROBOT, q)


def leave(q_0, q_e, v_e):
    """No correction."""
    return q_e, v_e


def project_velocities(q_0, q_e, v_e):
    """Eq. 14."""
    return q_e, split(q_e)[1] @ v_e


def linearise_at_the_last(q_0, q_e, v_e):
    """Eq. 20, with q₀ where the step began."""
    inverse, allowed = split(q_0)
    particular = q_0 - inverse @ error(q_0)
    q = particular - allowed @ particular + allowed @ q_e
    return q, split(q)[1] @ v_e


def linearise_at_the_estimate(q_0, q_e, v_e):
    """Eq. 20, with q₀ = q_e."""
    return linearise_at_the_last(q_e, q_e, v_e)


def project_by_mass(q_0, q_e, v_e):
    """The nearest state in the metric of the mass matrix."""
    return dl.project(ROBOT, q_e, v_e)


WAYS = {
    "no correction": leave,
    "Baumgarte": leave,
    "velocities": project_velocities,
    "SVD at the last q": linearise_at_the_last,
    "SVD at the estimate": linearise_at_the_estimate,
    "metric of M": project_by_mass,
}


def simulate(way: str) -> dl.Trajectory:
    """The four-bar let go from home, at every step."""
    gains = {"position_gain": RATE**2, "velocity_gain": 2 * RATE} if way == "Baumgarte" else {}
    times = np.arange(round(SECONDS / STEP) + 1) * STEP
    q, v = ROBOT.model.posture("home"), np.zeros(ROBOT.nv)
    states = [(q, v)]
    for _ in times[1:]:
        a = dl.constrained_dynamics(ROBOT, q, v, np.zeros(ROBOT.nv), **gains).acceleration
        estimate = q + STEP * v + 0.5 * STEP**2 * a, v + STEP * a
        q, v = WAYS[way](q, *estimate)
        states.append((q, v))
    found = (np.stack(parts) for parts in zip(*states, strict=True))
    return dl.Trajectory(times, *found, mechanism=ROBOT)


def draw(motions: dict[str, dl.Trajectory], path: Path) -> None:
    """Errors of position and velocity, and energies, over time."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    panels = {
        "how far the loop opens [m]": lambda log: np.maximum(log.drift, 1e-17),
        "how fast it opens [m/s]": lambda log: np.maximum(log.velocity_drift, 1e-17),
        "change of energy [J]": lambda log: log.energy - log.energy[0],
    }
    dashes = {"SVD at the estimate": "--", "metric of M": ":"}
    for axis, (title, value) in zip(axes, panels.items(), strict=True):
        for name, motion in motions.items():
            log = motion[::8]  # enough for a line
            axis.plot(log.time, value(log), dashes.get(name, "-"), linewidth=1.3, label=name)
        axis.set(title=title, xlabel="time [s]")
        axis.grid(alpha=0.3)
    axes[0].set_yscale("log")
    axes[1].set_yscale("log")
    axes[0].set_ylim(1e-17, 1.0)
    axes[1].set_ylim(1e-17, 1e1)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Simulate, print, draw."""
    motions = {way: simulate(way) for way in WAYS}
    print(f"A four-bar for {SECONDS:g} s, Taylor steps of {1e3 * STEP:g} ms")
    for way, log in motions.items():
        energy = abs(log.energy - log.energy[0]).max()
        print(f"  {way:20} opens by {log.drift.max():.1e} m, {log.velocity_drift.max():.1e} m/s; energy {energy:.1e} J")
    OUTPUT.mkdir(exist_ok=True)
    draw(motions, OUTPUT / "drift.svg")
    print(f"picture: {OUTPUT / 'drift.svg'}")


if __name__ == "__main__":
    main()
