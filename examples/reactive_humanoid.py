"""A humanoid on two feet that is pushed about, and balances by reactive control with a friction of 0.5."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

import delassus as dl

FRICTION = 0.5
PERIOD, SUBSTEPS = 2e-3, 4  # s, and steps of time in it
SECONDS = 3.0
SOLES = ("left_sole", "right_sole")
PUSHES = ((0.3, (60.0, 0.0, 0.0)), (1.2, (0.0, 50.0, 0.0)), (2.0, (-40.0, -30.0, 0.0)))
"""When the torso is pushed, each for 0.1 s, and how [N]."""


@dataclass
class Run:
    """What happened: times, configurations, wrenches of the soles (times, 2, 6), where soles are, and errors."""

    time: list[float] = field(default_factory=list)
    q: list[np.ndarray] = field(default_factory=list)
    force: list[np.ndarray] = field(default_factory=list)
    sole: list[np.ndarray] = field(default_factory=list)
    com: list[np.ndarray] = field(default_factory=list)
    push: list[np.ndarray] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    status: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)


def controller(robot: dl.Model, cone: str = "pyramid") -> dl.control.ReactiveControl:
    """The centre of mass stays, pelvis and torso stay upright, joints as they are as far as that allows."""
    return dl.control.ReactiveControl(
        robot,
        tasks=[
            dl.control.FollowCenterOfMass(weight=10.0, stiffness=40.0),
            dl.control.FollowFrame(weight=4.0, stiffness=60.0, frame="pelvis", rows="rotation"),
            dl.control.FollowFrame(weight=4.0, stiffness=60.0, frame="torso", rows="rotation"),
            dl.control.FollowPosture(weight=0.1, stiffness=40.0),
            dl.control.Nominal(acceleration=1e-4, force=1e-5),
        ],
        supports=[dl.control.Support(sole, 0.9 * FRICTION, size=(0.2, 0.085), least=30.0) for sole in SOLES],
        cone=cone,
    )


def balance() -> Run:
    """Stand, be pushed, come to rest again."""
    robot = dl.load("humanoid")
    control, home = controller(robot), robot.posture("home")
    sim = dl.Simulation(
        robot,
        dl.Ground(friction=FRICTION),
        time_step=PERIOD / SUBSTEPS,
        substeps=SUBSTEPS,
        touching=["left_foot_0", "right_foot_0"],
        max_contacts=8,
        max_limits=0,
    )
    reference, state, reaction, run = control.reference(home), sim.start(home), None, Run()
    for _ in range(round(SECONDS / PERIOD)):
        push = sum((np.array(F) for at, F in PUSHES if at <= state.time < at + 0.1), np.zeros(3))
        reaction = control(state.q, state.v, reference, reaction)
        state = sim.step(replace(state, v=pushed(robot, state, push)), reaction.torque)
        run.time.append(state.time)
        run.q.append(state.q.copy())
        run.force.append(reaction.force.reshape(2, 6))
        run.sole.append(np.array([dl.frame_placement(robot, state.q, frame=sole)[1] for sole in SOLES]))
        run.com.append(np.asarray(dl.dynamics.center_of_mass(robot, state.q)))
        run.push.append(push)
        run.residual.append(float(reaction.residual))
        run.status.append(int(reaction.status))
        run.iterations.append(int(reaction.iterations))
    return run


def pushed(robot: dl.Model, state: dl.simulation.State, push: np.ndarray) -> np.ndarray:
    """The velocity (nv,) with what a force (3,) [N] on the torso adds to it in a period: h M⁻¹ Jᵀ F."""
    if not push.any():
        return state.v
    J = dl.frame_jacobian(robot, state.q, frame="torso", reference="LOCAL_WORLD_ALIGNED")[:3]
    return state.v + PERIOD * np.linalg.solve(dl.crba(robot, state.q), J.T @ push)


def main() -> None:
    """In numbers."""
    run = balance()
    com, force, sole = np.array(run.com), np.array(run.force), np.array(run.sole)
    over = np.linalg.norm(force[..., :2], axis=-1) - FRICTION * force[..., 2]
    slip = np.linalg.norm(sole - sole[20], axis=-1)[20:].max()
    print(
        f"the centre of mass is pushed by up to {np.linalg.norm(com - com[0], axis=-1).max() * 100:.1f} cm and ends "
        f"{np.linalg.norm(com[-1] - com[0]) * 100:.2f} cm from where it was; soles move by {slip:.1e} m; forces leave "
        f"their cones by {max(over.max(), 0.0):.1e} N; largest residual {max(run.residual):.1e}, "
        f"{np.mean(run.iterations):.1f} Newton steps a qp, {max(run.iterations)} at most, "
        f"status {max(run.status)}"
    )


if __name__ == "__main__":
    main()
