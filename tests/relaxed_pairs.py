"""A ball on a plane beside a linkage with equalities, a limit and dry friction: in MuJoCo and here, in one state."""

import mujoco
import numpy as np

import delassus as dl

XML = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002" cone="{cone}" impratio="{impratio}" tolerance="0" iterations="300" ls_iterations="100"
          jacobian="dense"><flag warmstart="disable"/></option>
  <worldbody>
    <geom type="plane" size="5 5 .1" friction="0.4 0.01 0.01"/>
    <body name="ball" pos="0 0 0.0985">
      <freejoint/>
      <geom type="sphere" size="0.1" mass="1.3" friction="0.6 0.02 0.01" condim="{condim}" solref="{solref}"
            solimp="0.7 0.97 0.004 0.4 3" solmix="2"/>
    </body>
    <body name="crank" pos="1 0 0.5">
      <joint name="crank" axis="0 1 0" armature="0.01" frictionloss="{dry}"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02" mass="0.5" contype="0" conaffinity="0"/>
      <body name="rod" pos="0.4 0 0">
        <joint name="rod" axis="0 1 0" range="-4 {limit}" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0.1" size="0.02" mass="0.4" contype="0" conaffinity="0"/>
      </body>
    </body>
    <body name="rocker" pos="1.8 0 0.5">
      <joint name="rocker" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 -0.3 0 0.2" size="0.02" mass="0.3" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="rod" body2="rocker" anchor="0.3 0 0.1"/>
    <joint joint1="crank" joint2="rocker" polycoef="0.1 0.5 0.2 0 0"/>
  </equality>
</mujoco>
"""


def mixed(one, other, share):
    """The relaxation of two geoms that touch, as MuJoCo mixes it by a share of the first."""
    first, second = (np.array((*x.solref, *x.solimp)) for x in (one, other))
    both = share * first + (1.0 - share) * second
    if min(one.solref[0], other.solref[0]) <= 0.0:
        both[:2] = np.minimum(first[:2], second[:2])
    return dl.Relaxation(tuple(both[:2]), tuple(both[2:]), one.weight)


class Pair:
    """A model in MuJoCo and here, in the same state."""

    def __init__(self, cone="elliptic", condim=3, impratio=2.0, solref="0.015 1.2", dry=0.0, limit=4.0, seed=0):
        text = XML.format(cone=cone, condim=condim, impratio=impratio, solref=solref, dry=dry, limit=limit)
        self.mj, rng = mujoco.MjModel.from_xml_string(text), np.random.default_rng(seed)
        self.data = mujoco.MjData(self.mj)
        self.data.qpos[-3:] = 0.1 * rng.normal(size=3)
        self.data.qvel[:] = rng.normal(size=9)
        self.data.qpos[3:7] = rng.normal(size=4)
        self.data.qpos[3:7] /= np.linalg.norm(self.data.qpos[3:7])
        self.data.qfrc_applied[6:] = rng.normal(size=3)
        mujoco.mj_forward(self.mj, self.data)
        self.model = dl.from_mujoco(self.mj)
        self.q = dl.q_from_mujoco(self.model, self.data.qpos)
        self.v = dl.v_from_mujoco(self.model, self.q, self.data.qvel)
        self.tau = np.array(self.data.qfrc_applied)
        ball = dl.Relaxation([float(x) for x in solref.split()], (0.7, 0.97, 0.004, 0.4, 3))
        met = mixed(ball, dl.Relaxation(), 2.0 / 3.0)
        more = {3: {}, 4: {"torsional": 0.02}, 6: {"torsional": 0.02, "rolling": 0.01}}[condim]
        self.contact = dl.Contact("ball", radius=0.1, friction=0.6, tangent=(0, 1, 0), relaxation=met, **more)
        self.options = {"law": "relaxed", "impratio": impratio, "cone": cone, "tolerance": 1e-12}
        self.options |= {"limits": limit < 4.0, "joint_friction": dry > 0.0, "contacts": self.contact}

    def forces(self):
        """MuJoCo's, in the order of rows here: t1, t2, n, spin, roll, then equalities, limits, dry friction."""
        kind, f, contact = self.data.efc_type, np.array(self.data.efc_force), self.data.contact[0]
        wrench = np.zeros(6)
        mujoco.mj_contactForce(self.mj, self.data, 0, wrench)
        own = wrench[[1, 2, 0, 3, 4, 5]][: contact.dim]
        rest = mujoco.mjtConstraint
        R, _ = dl.frame_placement(self.model, self.q, frame=self.model.constraints[0].frame1)
        equal = f[kind == int(rest.mjCNSTR_EQUALITY)]
        stops, dry = (f[kind == int(k)] for k in (rest.mjCNSTR_LIMIT_JOINT, rest.mjCNSTR_FRICTION_DOF))
        return np.concatenate([own, R.T @ equal[:3], equal[3:], stops, dry])
