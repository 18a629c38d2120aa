"""Gaits that were learned here, in MuJoCo without further training.

    python -m benchmarks.learned_gait_in_mujoco run/policy.npz [go2.xml]

A robot from a file is MuJoCo's own model of this file, with the servos of the task instead of its actuators. A bundled
robot is written as MJCF from its joints, inertias, feet and loops. Observations are those of the task, computed from
MuJoCo's state.
"""

import sys
import warnings

import mujoco
import numpy as np

import delassus as dl
from delassus.learning import Environments, Policy, find_task
from delassus.learning.environment.episode import moment_without_contacts, pack, unpack

COMMANDS = {"quadruped-walk": (0.5, 0.75, 1.0), "biped-walk": (0.35, 0.5, 0.65)}
SECONDS = 10.0
TIME_STEP = 1e-3
STIFF = 'solref="0.004 1"'  # with MuJoCo's own softness, the biped's loops open by 1 cm, and it falls


def from_file(path, task):
    """MuJoCo's model of a file, with the servos of a task."""
    spec = mujoco.MjSpec.from_file(path)
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for servo in task.robot.actuators:
        stiffness, (_, _, damping) = servo.gain[0], servo.bias
        added = spec.add_actuator(name=servo.name, target=servo.target, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        added.gaintype, added.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        added.gainprm[0], added.biasprm[1], added.biasprm[2] = stiffness, -stiffness, damping
        added.ctrllimited, added.forcelimited = False, True
        added.forcerange = servo.force_range
    spec.option.timestep = TIME_STEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return spec.compile()


def from_model(task):
    """MuJoCo's model of a bundled robot; only its feet have contacts."""
    robot = task.robot
    feet = [one for one in robot.geometries if one.name in task.shapes and one.role == "collision"]
    frames = {one.name: one for one in robot.frame_list}
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
            f'<geom type="{one.shape}" size="{numbers(np.array(one.size) / (2 if one.shape == "box" else 1))}" '
            f'pos="{numbers(one.placement.translation)}" mass="0"/>'
            for one in feet
            if one.joint == k
        )
        return (
            f'<body name="b{k}" pos="{numbers(joint.placement.translation)}">{kind}'
            f'<inertial pos="{numbers(inertia.com)}" mass="{inertia.mass}" fullinertia="{numbers(full)}"/>{shapes}'
            f"{''.join(body(c) for c in children[k])}</body>"
        )

    servos = "".join(
        f'<position joint="{one.target}" kp="{one.gain[0]}" kv="{-one.bias[2]}" '
        f'forcerange="{numbers(one.force_range)}"/>'
        for one in robot.actuators
    )
    loops = "".join(
        f'<connect body1="b{frames[one.frame1].joint}" body2="b{frames[one.frame2].joint}" '
        f'anchor="{numbers(frames[one.frame1].placement.translation)}"/>'
        for one in robot.constraints
    )
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian"/><option timestep="{TIME_STEP}" integrator="implicitfast"/>'
        f'<default><geom {STIFF}/><equality {STIFF} solimp="0.99 0.999 0.001"/></default><worldbody>'
        f'<geom type="plane" size="0 0 1" friction="0.7"/>{"".join(body(c) for c in children[-1])}</worldbody>'
        f"<equality>{loops}</equality><actuator>{servos}</actuator></mujoco>"
    )


def walk(envs, policy, model, speed):
    """Mean speed [m/s], and whether it fell, of one robot with a command."""
    task, episode, data = envs.task, envs.episode, mujoco.MjData(model)
    start = envs.start(hold=envs.hold(command=(speed, 0.0, 0.0), phase=0.0))
    q, v, memory = start.simulation.q[0], start.simulation.v[0], start.memory[0]
    data.qpos[:] = dl.mujoco.q_to_mujoco(task.robot, q)
    data.qvel[:] = dl.mujoco.v_to_mujoco(task.robot, q, v)
    places = []
    for _ in range(round(SECONDS / task.period)):
        q = dl.mujoco.q_from_mujoco(task.robot, data.qpos)
        v = dl.mujoco.v_from_mujoco(task.robot, q, data.qvel)
        places.append(q[:2])
        now = moment_without_contacts(episode, q, v, memory, np.zeros(envs.actions))
        action = policy(task.observe(now)).astype(float)
        data.ctrl[:] = task.control(moment_without_contacts(episode, q, v, memory, action))
        mujoco.mj_step(model, data, round(task.period / TIME_STEP))
        now = moment_without_contacts(episode, q, v, memory, action)
        memory = pack(episode, {**unpack(episode, memory), **_advance(task, now), "action": action})
        if task.fails(now):
            return float("nan"), True
    return float(np.linalg.norm(np.diff(np.array(places)[::25], axis=0), axis=-1).sum() / SECONDS), False


def _advance(task, now):
    """The task's memory, with the command that it has."""
    return {**task.advance(now), "command": now["command"]}


def main():
    path, robot = sys.argv[1], (sys.argv[2:] or [None])[0]
    warnings.simplefilter("ignore", dl.DelassusWarning)
    policy = Policy.load(path)
    task = find_task(policy.task, robot)
    envs = Environments(task, 1)
    model = from_file(robot, task) if robot else from_model(task)
    print("command [m/s]  in MuJoCo [m/s]  fell")
    for speed in COMMANDS[policy.task]:
        reached, fell = walk(envs, policy, model, speed)
        print(f"{speed:13.2f}  {reached:15.3f}  {fell}")


if __name__ == "__main__":
    main()
