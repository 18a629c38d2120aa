"""4 096 double pendulums for 10 seconds: equations of motion in NumPy, compiled to native code.

The pendulums start a hair apart and part ways within seconds: the motion is chaotic. Their energies must not
change, which is what the printed drift shows. Run it as a script; the picture goes to output/.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy

import delassus as dl
import delassus.numpy as np

PENDULUMS, SECONDS, STEP, RECORD_EVERY = 4096, 10.0, 1e-3, 50
SPREAD = 0.1  # radians between the first and the last pendulum at the start
OUTPUT = Path(__file__).parent.parent / "output"


@dataclass(frozen=True)
class DoublePendulum:
    """Two point masses [kg] on two massless rods [m]."""

    m1: float = 1.0
    m2: float = 1.0
    l1: float = 1.0
    l2: float = 1.0
    gravity: float = 9.81


def derivative(p: DoublePendulum, x):
    """d/dt of the state (θ1, θ2, ω1, ω2): Lagrange's equations, M(θ) ω' = f(θ, ω), solved by Cramer's rule."""
    theta1, theta2, omega1, omega2 = x
    c, s = np.cos(theta1 - theta2), np.sin(theta1 - theta2)
    M11, M12, M22 = (p.m1 + p.m2) * p.l1**2, p.m2 * p.l1 * p.l2 * c, p.m2 * p.l2**2
    f1 = -p.m2 * p.l1 * p.l2 * s * omega2**2 - (p.m1 + p.m2) * p.gravity * p.l1 * np.sin(theta1)
    f2 = p.m2 * p.l1 * p.l2 * s * omega1**2 - p.m2 * p.gravity * p.l2 * np.sin(theta2)
    determinant = M11 * M22 - M12 * M12
    return np.stack([omega1, omega2, (M22 * f1 - M12 * f2) / determinant, (M11 * f2 - M12 * f1) / determinant])


@dl.kernel("(4)->(4)")
def step(p: DoublePendulum, x):
    """The state one time step later, by the classical Runge–Kutta method."""
    k1 = derivative(p, x)
    k2 = derivative(p, x + STEP / 2 * k1)
    k3 = derivative(p, x + STEP / 2 * k2)
    k4 = derivative(p, x + STEP * k3)
    return x + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@dl.kernel("(4)->()")
def energy(p: DoublePendulum, x):
    """Kinetic plus potential energy [J], the latter zero at the pivot's height."""
    theta1, theta2, omega1, omega2 = x
    v1, v2 = p.l1 * omega1, p.l2 * omega2
    kinetic = 0.5 * p.m1 * v1**2 + 0.5 * p.m2 * (v1**2 + v2**2 + 2 * v1 * v2 * np.cos(theta1 - theta2))
    potential = -(p.m1 + p.m2) * p.gravity * p.l1 * np.cos(theta1) - p.m2 * p.gravity * p.l2 * np.cos(theta2)
    return kinetic + potential


def roll(model: DoublePendulum, x):
    """The states at every RECORD_EVERY-th step (frames, pendulums, 4), and the seconds it took."""
    frames = [x.copy()]
    advance = step.specialize(model)
    step.warm_up(model, batch=True)  # so that the clock below sees the running alone
    steps = round(SECONDS / STEP)
    start = time.perf_counter()
    for k in range(1, steps + 1):
        advance(x, out=x)
        if k % RECORD_EVERY == 0:
            frames.append(x.copy())
    return numpy.stack(frames), time.perf_counter() - start


def picture(model: DoublePendulum, frames, drift, path: Path) -> None:
    """Where the lower masses are at four moments, and the energy drift over time."""
    times = numpy.linspace(0, SECONDS, len(frames))
    figure, axes = plt.subplots(1, 5, figsize=(16, 3.6), layout="constrained")
    color = numpy.linspace(0, 1, PENDULUMS)
    for axis, share in zip(axes, (0.0, 0.25, 0.5, 1.0), strict=False):
        frame = round(share * (len(frames) - 1))
        theta1, theta2 = frames[frame][:, :2].T
        x = model.l1 * numpy.sin(theta1) + model.l2 * numpy.sin(theta2)
        y = -model.l1 * numpy.cos(theta1) - model.l2 * numpy.cos(theta2)
        axis.scatter(x, y, s=2, c=color, cmap="viridis")
        axis.plot(0, 0, "k+")
        axis.set(title=f"t = {times[frame]:g} s", xlim=(-2.1, 2.1), ylim=(-2.1, 2.1), aspect="equal", xlabel="x [m]")
    axes[0].set_ylabel("height [m]")
    axes[4].semilogy(times[1:], drift[1:], color="k")
    axes[4].set(title="largest energy drift", xlabel="t [s]", ylabel="share of energy, bottom to top")
    figure.suptitle(f"{PENDULUMS} double pendulums that start within {SPREAD:g} rad of each other: their lower masses")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Roll, check, time against NumPy, draw."""
    model = DoublePendulum()
    x = numpy.zeros((PENDULUMS, 4))
    x[:, 0] = x[:, 1] = 2.0 + numpy.linspace(0, SPREAD, PENDULUMS)

    frames, seconds = roll(model, x.copy())
    energies = energy(model, frames)
    top = energy(model, [numpy.pi, numpy.pi, 0.0, 0.0]) - energy(model, [0.0, 0.0, 0.0, 0.0])
    drift = abs(energies - energies[0]).max(axis=1) / top
    steps = PENDULUMS * SECONDS / STEP

    columns, repeats = numpy.ascontiguousarray(x.T), 20
    start = time.perf_counter()
    for _ in range(repeats):
        columns = step.function(model, columns)  # the same function, by plain NumPy on whole columns
    plain = (time.perf_counter() - start) / repeats * SECONDS / STEP

    picture(model, frames, drift, OUTPUT / "double_pendulum.png")
    print(f"{PENDULUMS} double pendulums for {SECONDS:g} s, steps of {1e3 * STEP:g} ms, Runge–Kutta 4, one thread")
    print(f"  compiled    {seconds:7.2f} s   {steps / seconds / 1e6:6.1f} million steps per second")
    print(f"  plain NumPy {plain:7.2f} s   {steps / plain / 1e6:6.1f} million steps per second (from {repeats} steps)")
    print(f"  largest energy drift in {SECONDS:g} s: {drift.max():.1e} of the energy between bottom and top")
    print(f"  picture: {OUTPUT / 'double_pendulum.png'}")


if __name__ == "__main__":
    main()
