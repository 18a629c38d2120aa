"""A gait that was learnt here, in MuJoCo without learning again.

    python -m benchmarks.learned_gait_in_mujoco run/policy.npz

The robot is written as MJCF from its joints, inertias and feet; observations are computed from MuJoCo's state.
"""

import sys

import mujoco
import numpy as np

from delassus.learning import Policy, find_task

COMMANDS = (0.5, 0.75, 1.0)
SECONDS = 10.0


def mjcf(task):
    """The robot of a task as MJCF, feet as its only shapes."""
    robot = task.robot
    feet = {one.name: one for one in robot.geometries if one.name in task.shapes and one.role == "collision"}
    children = {k: [c for c, j in enumerate(robot.joints) if j.parent == k] for k in range(-1, len(robot.joints))}

    def numbers(values):
        return " ".join(repr(float(x)) for x in np.ravel(values))

    def body(k):
        joint, inertia = robot.joints[k], robot.joints[k].inertia
        I = np.array(inertia.rotational)
        full = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        kind = (
            "<freejoint/>"
            if joint.kind.nv == 6
            else f'<joint name="{joint.name}" axis="{numbers(joint.kind.axis)}" limited="false"/>'
        )
        shapes = "".join(
            f'<geom type="sphere" size="{one.size[0]}" pos="{numbers(one.placement.translation)}" mass="0"/>'
            for one in feet.values()
            if one.joint == k
        )
        return (
            f'<body name="b{k}" pos="{numbers(joint.placement.translation)}">{kind}'
            f'<inertial pos="{numbers(inertia.com)}" mass="{inertia.mass}" fullinertia="{numbers(full)}"/>{shapes}'
            f"{''.join(body(c) for c in children[k])}</body>"
        )

    stiffness, damping = 35.0 * robot.mass / 12.0, 35.0 * robot.mass / 12.0 / 70.0
    servos = "".join(
        f'<position joint="{j.name}" kp="{stiffness}" kv="{damping}" '
        f'forcerange="{-j.effort_limit[0]} {j.effort_limit[0]}"/>'
        for j in robot.joints[1:]
    )
    return (
        f'<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"/><worldbody>'
        f'<geom type="plane" size="0 0 1" friction="0.7"/>{"".join(body(c) for c in children[-1])}</worldbody>'
        f"<actuator>{servos}</actuator></mujoco>"
    )


def walk(task, policy, speed):
    """Mean speed [m/s], and whether it fell, of one robot with a command."""
    model = mujoco.MjModel.from_xml_string(mjcf(task))
    data = mujoco.MjData(model)
    stand = np.array(task.stand)
    data.qpos[:] = [0, 0, float(task.robot.posture("home")[2]) + 1e-3, 1, 0, 0, 0, *stand]
    action, phase = np.zeros(12), 0.0
    for _ in range(round(SECONDS / task.period)):
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, data.qpos[3:7])
        R = R.reshape(3, 3)
        parts = (R.T @ data.qvel[:3], data.qvel[3:6], R[2], data.qpos[7:] - stand, 0.1 * data.qvel[6:], action)
        action = policy(np.concatenate([*parts, (speed, 0, 0), (np.sin(phase), np.cos(phase))])).astype(float)
        data.ctrl[:] = stand + 0.5 * action
        for _ in range(round(task.period / model.opt.timestep)):
            mujoco.mj_step(model, data)
        phase = (phase + 2.0 * np.pi * task.FREQUENCY * task.period) % (2.0 * np.pi)
        if data.qpos[2] < task.height:
            return float("nan"), True
    return float(np.hypot(*data.qpos[:2]) / SECONDS), False


def main():
    task, policy = find_task("quadruped-walk"), Policy.load(sys.argv[1])
    print("command [m/s]  in MuJoCo [m/s]  fell")
    for speed in COMMANDS:
        reached, fell = walk(task, policy, speed)
        print(f"{speed:13.2f}  {reached:15.3f}  {fell}")


if __name__ == "__main__":
    main()
