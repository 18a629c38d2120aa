"""A quadruped and a humanoid in MJCF, to be dropped here and in MuJoCo: they touch the floor and not themselves."""

import numpy as np

FLOOR = '<geom name="floor" type="plane" size="0 0 1" friction="0.8" contype="1" conaffinity="1"/>'
HEAD = """
  <compiler angle="radian"/>
  <option timestep="0.001" cone="elliptic" impratio="10"/>
  <default><geom contype="0" conaffinity="1"/><joint armature="0.01" damping="0.5"/></default>"""


def _position(joint: str, stiffness: float, damping: float, extra: str = "") -> str:
    return f'<position joint="{joint}" kp="{stiffness}" kv="{damping}" {extra}/>'


# --- quadruped -----------------------------------------------------------------------------------------------

_LEGS = {"fl": (0.2, 0.1), "fr": (0.2, -0.1), "hl": (-0.25, 0.12), "hr": (-0.25, -0.12)}


def _leg(name: str, x: float, y: float) -> str:
    return f"""
    <body name="{name}_thigh" pos="{x} {y} 0">
      <joint name="{name}_hip" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02" mass="0.7" conaffinity="0"/>
      <body name="{name}_calf" pos="0 0 -0.2">
        <joint name="{name}_knee" axis="0 1 0" range="-2.7 -0.3" limited="true" damping="0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.012" mass="0.15" conaffinity="0"/>
        <geom name="{name}_foot" type="sphere" pos="0 0 -0.2" size="0.02" mass="0.05"/>
      </body>
    </body>"""


QUADRUPED = f"""
<mujoco>{HEAD}
  <worldbody>{FLOOR}
    <body name="trunk" pos="0 0 0.4">
      <freejoint/>
      <geom type="box" size="0.25 0.1 0.05" mass="6" conaffinity="0"/>
      {"".join(_leg(name, *at) for name, at in _LEGS.items())}
    </body>
  </worldbody>
  <actuator>{
    "".join(_position(f"{n}_hip", 150, 6) + _position(f"{n}_knee", 150, 6, 'forcerange="-36 36"') for n in _LEGS)
}</actuator>
</mujoco>"""
QUADRUPED_POSE = np.array([0.7, -1.4] * 4)
QUADRUPED_FEET = [f"{name}_foot" for name in _LEGS]


# --- humanoid: 27 velocities, boxes as feet, balls as knees and hands ------------------------------------------------

_HINGES = {
    "hip_yaw": (0.0, 600),
    "hip_roll": (0.0, 900),
    "hip_pitch": (-0.3, 900),
    "knee": (0.6, 900),
    "ankle_pitch": (-0.3, 900),
    "ankle_roll": (0.0, 900),
}
_ARM = {"shoulder_pitch": (0.2, 100), "shoulder_roll": (0.0, 100), "shoulder_yaw": (0.0, 100), "elbow": (-0.6, 100)}
_AXES = {"yaw": "0 0 1", "roll": "1 0 0", "pitch": "0 1 0", "knee": "0 1 0", "elbow": "0 1 0"}


def _hinge(side: str, name: str) -> str:
    return f'<joint name="{side}_{name}" axis="{_AXES[name.rpartition("_")[2]]}"/>'


def _human_leg(side: str, y: float) -> str:
    return f"""
    <body name="{side}_thigh" pos="0 {y} -0.05">
      {_hinge(side, "hip_yaw")}{_hinge(side, "hip_roll")}{_hinge(side, "hip_pitch")}
      <geom type="capsule" fromto="0 0 -0.05 0 0 -0.35" size="0.06" mass="5" conaffinity="0"/>
      <body name="{side}_shin" pos="0 0 -0.4">
        {_hinge(side, "knee")}
        <geom name="{side}_knee_ball" type="sphere" size="0.06" mass="0.5"/>
        <geom type="capsule" fromto="0 0 -0.05 0 0 -0.35" size="0.045" mass="3" conaffinity="0"/>
        <body name="{side}_foot_body" pos="0 0 -0.4">
          {_hinge(side, "ankle_pitch")}{_hinge(side, "ankle_roll")}
          <geom name="{side}_foot" type="box" pos="0.04 0 -0.05" size="0.11 0.05 0.02" mass="1"/>
        </body>
      </body>
    </body>"""


def _human_arm(side: str, y: float) -> str:
    return f"""
    <body name="{side}_upper_arm" pos="0 {y} 0.35">
      {_hinge(side, "shoulder_pitch")}{_hinge(side, "shoulder_roll")}{_hinge(side, "shoulder_yaw")}
      <geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.04" mass="2" conaffinity="0"/>
      <body name="{side}_forearm" pos="0 0 -0.28">
        {_hinge(side, "elbow")}
        <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.03" mass="1" conaffinity="0"/>
        <geom name="{side}_hand" type="sphere" pos="0 0 -0.24" size="0.04" mass="0.4"/>
      </body>
    </body>"""


HUMANOID = f"""
<mujoco>{HEAD}
  <option integrator="implicitfast"/>
  <worldbody>{FLOOR}
    <body name="pelvis" pos="0 0 0.9">
      <freejoint/>
      <geom type="box" size="0.08 0.12 0.06" mass="8" conaffinity="0"/>
      {_human_leg("left", 0.1)}{_human_leg("right", -0.1)}
      <body name="torso" pos="0 0 0.1">
        <joint name="waist" axis="0 0 1"/>
        <geom type="box" pos="0 0 0.2" size="0.09 0.15 0.2" mass="20" conaffinity="0"/>
        <geom name="head" type="sphere" pos="0 0 0.5" size="0.1" mass="4"/>
        {_human_arm("left", 0.2)}{_human_arm("right", -0.2)}
      </body>
    </body>
  </worldbody>
  <actuator>
    {_position("waist", 600, 40)}
    {"".join(_position(f"{s}_{n}", k, 0.1 * k) for s in ("left", "right") for n, (_, k) in (_HINGES | _ARM).items())}
  </actuator>
</mujoco>"""
_LEG_POSE = [angle for angle, _ in _HINGES.values()]
_ARM_POSE = [angle for angle, _ in _ARM.values()]
HUMANOID_POSE = np.array([*_LEG_POSE, *_LEG_POSE, 0.0, *_ARM_POSE, *_ARM_POSE])
"""In the order of the joints."""
HUMANOID_CONTROL = np.array([0.0, *_LEG_POSE, *_ARM_POSE, *_LEG_POSE, *_ARM_POSE])
"""In the order of the actuators."""
HUMANOID_FEET = ["left_foot", "right_foot"]
