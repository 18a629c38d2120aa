"""A quadruped under reactive control: it moves its trunk over three feet and lifts the fourth; and it trots."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import delassus as dl

LEGS = tuple(f"{end}_{side}" for end in ("front", "hind") for side in ("left", "right"))
PAIRS = (("front_left", "hind_right"), ("front_right", "hind_left"))
FRICTION = 0.6
STEP = 2e-3  # s
LIFTED = 0.08  # m
SWING = 0.18  # s
SPEED = 0.25  # m/s
STRIDES = 8


@dataclass
class Run:
    """What happened: times, configurations, forces of the supports (times, 4, 3), largest errors of the qps."""

    time: list[float] = field(default_factory=list)
    q: list[np.ndarray] = field(default_factory=list)
    v: list[np.ndarray] = field(default_factory=list)
    force: list[np.ndarray] = field(default_factory=list)
    active: list[np.ndarray] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    status: list[int] = field(default_factory=list)


def controller(robot: dl.Model) -> dl.control.ReactiveControl:
    """Tasks of the trunk, of four feet that follow while they swing, of the joints, and small forces."""
    feet = [dl.control.FollowFrame(f"{leg} swing", 100.0, 900.0, frame=f"{leg}_foot", rows="position") for leg in LEGS]
    return dl.control.ReactiveControl(
        robot,
        tasks=[
            dl.control.FollowFrame("trunk", (5.0, 5.0, 10.0, 10.0, 10.0, 5.0), 150.0, frame="trunk"),
            *feet,
            dl.control.FollowPosture(weight=1e-3, stiffness=50.0),
            dl.control.Nominal(force=1e-4),
        ],
        supports=[dl.control.Support(f"{leg}_foot", FRICTION, least=0.0) for leg in LEGS],
    )


def closed_loop(reference, seconds: float) -> Run:
    """Simulate, a qp a step, each started from the one before; reference(time, q, v) says what is asked for."""
    robot = dl.load("quadruped")
    control = controller(robot)
    sim = dl.Simulation(
        robot,
        dl.Ground(friction=FRICTION),
        time_step=STEP,
        touching=[f"{leg}_calf_1" for leg in LEGS],
        max_contacts=4,
        max_limits=0,
    )
    state, reaction, run = sim.start(robot.posture("home")), None, Run()
    for _ in range(round(seconds / STEP)):
        asked = reference(control, state.time, state.q, state.v)
        reaction = control(state.q, state.v, asked, reaction)
        state = sim.step(state, reaction.torque)
        run.time.append(state.time)
        run.q.append(state.q.copy())
        run.v.append(state.v.copy())
        run.force.append(reaction.force.reshape(-1, 3))
        run.active.append(np.array([asked[control.places[f"{leg}_foot.active"]][0] for leg in LEGS]))
        run.residual.append(float(reaction.residual))
        run.status.append(int(reaction.status))
    return run


def smooth(share: float) -> float:
    """From 0 to 1, at rest at both ends."""
    share = min(max(share, 0.0), 1.0)
    return share**3 * (10.0 - 15.0 * share + 6.0 * share**2)


def lift_foot() -> Run:
    """The trunk goes back and to the right, the front left foot up and down again, the trunk home."""
    robot = dl.load("quadruped")
    home = robot.posture("home")
    foot = np.asarray(dl.frame_placement(robot, home, frame="front_left_foot")[1])

    def reference(control, time, q, v):
        over = smooth(time / 0.6) - smooth((time - 1.8) / 0.6)
        up = smooth((time - 0.7) / 0.4) - smooth((time - 1.2) / 0.4)
        swings = 0.7 <= time < 1.65
        return control.reference(
            home,
            {
                "trunk.position": home[:3] + over * np.array([-0.06, -0.05, 0.0]),
                "front_left swing.position": foot + up * np.array([0.03, 0.0, LIFTED]),
                "front_left_foot.active": 0.0 if swings else 1.0,
                **{f"{leg} swing.weight": 1.0 if swings and leg == "front_left" else 0.0 for leg in LEGS},
            },
        )

    return closed_loop(reference, 2.6)


def trot() -> Run:
    """Two diagonal pairs of feet in turn; a foot swings to where the trunk will be above it half of the time."""
    robot = dl.load("quadruped")
    home = robot.posture("home")
    feet = {leg: np.asarray(dl.frame_placement(robot, home, frame=f"{leg}_foot")[1]) for leg in LEGS}
    start, begins = dict(feet), 0.3

    def reference(control, time, q, v):
        gone = max(time - begins, 0.0)
        speed = SPEED * (smooth(gone / 0.5) - smooth((gone - (2 * STRIDES - 4) * SWING) / 0.5))
        velocity = velocity_of_trunk(robot, q, v)
        number, share = divmod(gone / SWING, 1.0)
        moving = PAIRS[int(number) % 2] if 0.0 < gone and number < 2 * STRIDES else ()
        asked = {
            "trunk.position": np.array([q[0], 0.0, home[2]]),  # forward it follows its speed alone
            "trunk.velocity": np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.0]),
        }
        for leg in LEGS:
            swings = leg in moving
            asked[f"{leg}_foot.active"] = asked_weight = 0.0 if swings else 1.0
            asked[f"{leg} swing.weight"] = 1.0 - asked_weight
            if not swings:
                start[leg] = np.asarray(dl.frame_placement(robot, q, frame=f"{leg}_foot")[1])
                continue
            # Where the hip will be when the foot comes down, and half a stance ahead; further if it is too fast.
            ahead = velocity * ((1.0 - share) * SWING + 0.5 * SWING) + 0.05 * (velocity - [speed, 0.0])
            way = q[:2] + feet[leg][:2] + ahead - start[leg][:2]
            height, rate = 0.05 * np.sin(np.pi * share), 0.05 * np.pi / SWING * np.cos(np.pi * share)
            place = start[leg][:2] + smooth(share) * way
            asked[f"{leg} swing.position"] = np.append(place, feet[leg][2] + height)
            asked[f"{leg} swing.velocity"] = np.array([*way / SWING, rate, 0.0, 0.0, 0.0])
        return control.reference(home, asked)

    return closed_loop(reference, begins + 2 * STRIDES * SWING + 0.4)


def velocity_of_trunk(robot: dl.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Over the ground (2,) [m/s]."""
    return np.asarray(dl.frame_velocity(robot, q, v, frame="trunk", reference="LOCAL_WORLD_ALIGNED"))[:2]


def main() -> None:
    """Both, in numbers."""
    robot = dl.load("quadruped")
    for name, run in (("lifts a foot", lift_foot()), ("trots", trot())):
        q = np.array(run.q)
        heights = [dl.frame_placement(robot, q, frame=f"{leg}_foot")[1][:, 2].max() for leg in LEGS]
        force = np.array(run.force)
        over = np.linalg.norm(force[..., :2], axis=-1) - FRICTION * force[..., 2]
        print(
            f"it {name}: the trunk goes {q[-1, 0] - q[0, 0]:+.3f} m, tilts by {2 * np.abs(q[:, 3:5]).max():.3f} rad at "
            f"most; feet rise to {np.round(heights, 3)} m; forces leave their cones by {max(over.max(), 0.0):.1e} N, "
            f"largest residual {max(run.residual):.1e}, status {max(run.status)}"
        )


if __name__ == "__main__":
    main()
