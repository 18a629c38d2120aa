"""Steps of arms with elastic joints: the compliant scheme on a batch, against MuJoCo's implicit integrators."""

from __future__ import annotations

from typing import Any, Final

import mujoco
import mujoco.rollout
import numpy as np

import delassus as dl
from benchmarks.timing import best_of_each
from delassus.step.compliant.kernel import compliant_kernel
from delassus.step.points.parameters import scene_for

BATCH: Final = 4096
STEP: Final = 1e-3
AXES: Final = ("0 0 1", "0 1 0", "0 0 1", "0 1 0", "0 0 1", "0 1 0", "0 0 1")


def elastic_arm(stiffness: float = 500.0, damping: float = 2.0) -> str:
    """MJCF of an arm of seven joints, each with a spring and a damper."""
    bodies = "".join(
        f'<body pos="0 0 {0.0 if k == 0 else 0.25}">'
        f'<joint name="j{k}" type="hinge" axis="{axis}" stiffness="{stiffness}" damping="{damping}" armature="0.01"/>'
        f'<geom type="capsule" fromto="0 0 0 0 0 0.25" size="0.04" mass="{2.0 - 0.2 * k}" contype="0" conaffinity="0"/>'
        for k, axis in enumerate(AXES)
    )
    option = f'<option timestep="{STEP}" integrator="implicit"/>'
    return f"<mujoco>{option}<worldbody>{bodies}{'</body>' * len(AXES)}</worldbody></mujoco>"


class Peer:
    """MuJoCo on one thread: a step of every state of a batch, in its own loop."""

    def __init__(self, integrator: Any, q: Any, v: Any) -> None:
        self.model = mujoco.MjModel.from_xml_string(elastic_arm())
        self.model.opt.integrator = integrator
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.data = mujoco.MjData(self.model)
        self.initial = np.concatenate([np.zeros((len(q), 1)), q, v], 1)
        self.rollout = mujoco.rollout.Rollout(nthread=0)
        self.state = np.zeros((len(q), 1, self.initial.shape[1]))

    def __call__(self) -> Any:
        """The states after a step."""
        self.rollout.rollout(
            self.model, self.data, self.initial, nstep=1, state=self.state, skip_checks=False, chunk_size=None
        )
        return self.state[:, 0]


def run(batch: int = BATCH, repeat: int = 5) -> str:
    """A table of steps per second."""
    robot = dl.load(elastic_arm())
    rng = np.random.default_rng(0)
    q, v = 0.3 * rng.normal(size=(batch, robot.nq)), rng.normal(size=(batch, robot.nv))
    tau, h = np.zeros(v.shape), np.full(batch, STEP)
    scene, _ = scene_for(robot, (), False, False)
    ours = compliant_kernel.specialize(scene, outputs=("q", "v", "status"))
    peers = {
        "implicit": Peer(mujoco.mjtIntegrator.mjINT_IMPLICIT, q, v),
        "implicitfast": Peer(mujoco.mjtIntegrator.mjINT_IMPLICITFAST, q, v),
    }
    after = np.asarray(ours(q, v, tau, h)[1])
    theirs = peers["implicit"]()[:, 1 + robot.nq :]
    apart = np.abs(after - theirs).max() / np.abs(theirs).max()
    seconds = best_of_each({"ours": lambda: ours(q, v, tau, h), **peers}, repeat=repeat)
    lines = [
        f"### {batch} arms of seven elastic joints, one step of {STEP * 1e3:g} ms, one thread\n",
        "| | steps a second | ratio |",
        "|---|---|---|",
        f"| `compliant_step` | {batch / seconds['ours']:,.0f} | |",
    ]
    lines += [
        f"| MuJoCo `{name}` | {batch / seconds[name]:,.0f} | {seconds[name] / seconds['ours']:.1f} |" for name in peers
    ]
    lines.append(f"\nVelocities differ by {apart:.1e} of the largest: MuJoCo's springs are explicit.\n")
    return "\n".join(lines)


if __name__ == "__main__":
    print(run())
