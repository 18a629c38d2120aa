"""A quadruped that stands up and hops, by predictive sampling.

It lies with folded legs. The cost asks for the height of standing, for a moment for much more, and little else: when
legs bend and when they push comes out of the samples. Run it with
`python examples/sampling_quadruped.py`; the picture goes to docs/images.
"""

import matplotlib.pyplot as plt
import numpy as np
from sampling import INK, OUTPUT, RED, Run, closed_loop

import delassus as dl
from delassus.simulation import position_servos

PERIODS = 100
HOP = (1.0, 1.2)
ROBOT = dl.load("quadruped")
HOME = ROBOT.posture("home")
FOLDED = np.concatenate([[0.0, 0.0, 0.12], HOME[3:7], np.tile([0.0, 1.35, -2.6], 4)])


@dl.kernel("(),(nq),(nv),(12)->()")
def lively(model, time, q, v, u):
    """Height, 25 cm more of it during the hop; upright, in place, calm, and servos near their standing targets."""
    height = HOME[2] + dl.numpy.where((time > HOP[0]) & (time < HOP[1]), 0.25, 0.0)
    place, tilt = q[0] ** 2 + q[1] ** 2 + q[5] ** 2, q[3] ** 2 + q[4] ** 2
    bent = u - HOME[7:]
    return 50.0 * (q[2] - height) ** 2 + 5.0 * tilt + 0.5 * place + 0.002 * (v @ v) + 0.01 * (bent @ bent)


def planner(samples: int = 512) -> dl.control.Sampling:
    """Servos on all joints, a control every 20 ms, 0.4 s ahead."""
    sim = dl.Simulation(
        ROBOT,
        dl.Ground(friction=0.7),
        time_step=5e-3,
        substeps=4,
        actuators=position_servos(ROBOT, stiffness=40.0, damping=1.0),
        touching="*_calf_1",
        max_limits=0,
    )
    return dl.control.Sampling(
        sim,
        lively,
        horizon=20,
        samples=samples,
        knots=5,
        noise=0.5,
        narrowest=0.2,
        temperature=0.03,
        limits=(HOME[7:] - 1.1, HOME[7:] + 1.1),
    )


def stand_up_and_hop(seed: int = 0) -> Run:
    """In closed loop."""
    return closed_loop(planner(), FOLDED, PERIODS, seed, control=FOLDED[7:])


def clearance(run: Run) -> np.ndarray:
    """How high the lowest foot is (times,) [m]."""
    feet = [dl.frame_placement(ROBOT, run.q, frame=foot.name)[1][:, 2] for foot in ROBOT.frames("*_foot")]
    return np.min(feet, 0) - min(
        dl.frame_placement(ROBOT, HOME, frame=foot.name)[1][2] for foot in ROBOT.frames("*_foot")
    )


def sticks(axis, q, shift: float) -> None:
    """The robot from its left side."""
    place = {frame.name: dl.frame_placement(ROBOT, q, frame=frame.name)[1] for frame in ROBOT.frames("*")}
    sides = [["hind_left_hip", "front_left_hip"]]
    sides += [[f"{leg}_{part}" for part in ("hip", "thigh", "calf", "foot")] for leg in ("front_left", "hind_left")]
    for chain in sides:
        points = np.array([place[name] for name in chain])
        axis.plot(points[:, 0] + shift, points[:, 2], "-", color=INK, linewidth=2.0, solid_capstyle="round")


def main() -> None:
    """Simulate, print, draw."""
    run = stand_up_and_hop()
    gap = clearance(run)
    print(f"quadruped: feet {100 * gap.max():.0f} cm above the ground at {run.time[gap.argmax()]:.2f} s")
    figure, (above, below) = plt.subplots(2, 1, figsize=(9.0, 4.4), height_ratios=(1.1, 1.0), layout="constrained")
    for k, at in enumerate((0.0, 0.1, 0.3, 0.9, 1.04, 1.14, 1.3, 2.0)):
        sticks(above, run.q[np.argmin(np.abs(run.time - at))], 0.7 * k)
        above.text(0.7 * k, 0.58, f"{at:g} s", ha="center", color=INK)
    above.axhline(0.0, color=INK, linewidth=1.0)
    above.set(aspect="equal", ylim=(-0.03, 0.66))
    above.axis("off")
    below.axvspan(*HOP, color="#bdc3c7", alpha=0.6, linewidth=0.0)
    below.plot(run.time, run.q[:, 2], color=INK, label="height of the trunk [m]")
    below.plot(run.time, gap, color=RED, label="height of the lowest foot [m]")
    below.set(xlabel="time [s]", xlim=(0.0, run.time[-1]))
    below.legend(frameon=False, fontsize=8)
    below.grid(alpha=0.3)
    OUTPUT.mkdir(exist_ok=True)
    figure.savefig(OUTPUT / "sampling_quadruped.svg", metadata={"Date": None})
    plt.close(figure)
    print(f"picture: {OUTPUT / 'sampling_quadruped.svg'}")


if __name__ == "__main__":
    main()
