"""Joints of every kind against Pinocchio, in mechanisms of random shape, order, placements and inertias.

A relative error in the infinity norm of 1e-10 is allowed, more for accelerations where the mass matrix is ill
conditioned.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.model.joints import (
    Cylindrical,
    Free,
    Helical,
    JointKind,
    Motion,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Translation,
    Universal,
    _Kind,
    aligned,
)
from delassus.model.model import Frame, Joint, Model
from delassus.model.placement import Inertia, Placement
from differences import jacobian

REFERENCES = {"LOCAL": pin.LOCAL, "WORLD": pin.WORLD, "LOCAL_WORLD_ALIGNED": pin.LOCAL_WORLD_ALIGNED}
X, Y, Z = np.eye(3)


# --- mechanisms -------------------------------------------------------------------------------------------------------


def random_axis(rng):
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def random_rotation(rng):
    return pin.Quaternion(*random_quaternion(rng)).matrix()


def random_quaternion(rng):
    quaternion = rng.normal(size=4)
    return quaternion / np.linalg.norm(quaternion)


def random_placement(rng):
    return pin.SE3(random_rotation(rng), rng.uniform(-0.5, 0.5, 3))


def random_inertia(rng):
    """A box of 0.1 to 0.5 m."""
    size, mass, axes = rng.uniform(0.1, 0.5, 3), rng.uniform(0.5, 5.0), random_rotation(rng)
    moments = mass / 12 * (np.sum(size**2) - size**2)
    return pin.Inertia(mass, rng.uniform(-0.2, 0.2, 3), axes @ np.diag(moments) @ axes.T)


def continuous_about(axis):
    """Pinocchio's continuous joint about any axis, which can be had from URDF only."""
    xyz = " ".join(map(repr, axis.tolist()))
    ends = '<parent link="a"/><child link="b"/>'
    joint = f'<joint name="j" type="continuous">{ends}<axis xyz="{xyz}"/></joint>'
    return pin.buildModelFromXML(f'<robot name="r"><link name="a"/><link name="b"/>{joint}</robot>').joints[1]


def universal(rng):
    first, second = random_rotation(rng)[:, :2].T
    return pin.JointModelUniversal(first.copy(), second.copy())


KINDS: dict[str, Callable[[Any], Any]] = {
    "free": lambda rng: pin.JointModelFreeFlyer(),
    "spherical": lambda rng: pin.JointModelSpherical(),
    "planar": lambda rng: pin.JointModelPlanar(),
    "translation": lambda rng: pin.JointModelTranslation(),
    "revolute x": lambda rng: pin.JointModelRX(),
    "revolute y": lambda rng: pin.JointModelRY(),
    "revolute z": lambda rng: pin.JointModelRZ(),
    "revolute": lambda rng: pin.JointModelRevoluteUnaligned(random_axis(rng)),
    "continuous x": lambda rng: pin.JointModelRUBX(),
    "continuous y": lambda rng: pin.JointModelRUBY(),
    "continuous z": lambda rng: pin.JointModelRUBZ(),
    "continuous": lambda rng: continuous_about(random_axis(rng)),
    "prismatic x": lambda rng: pin.JointModelPX(),
    "prismatic y": lambda rng: pin.JointModelPY(),
    "prismatic z": lambda rng: pin.JointModelPZ(),
    "prismatic": lambda rng: pin.JointModelPrismaticUnaligned(random_axis(rng)),
    "helical x": lambda rng: pin.JointModelHX(rng.uniform(-0.5, 0.5)),
    "helical y": lambda rng: pin.JointModelHY(rng.uniform(-0.5, 0.5)),
    "helical z": lambda rng: pin.JointModelHZ(rng.uniform(-0.5, 0.5)),
    "helical": lambda rng: pin.JointModelHelicalUnaligned(random_axis(rng), rng.uniform(-0.5, 0.5)),
    "universal": universal,
}
EACH = [name for name in KINDS if name[-2:] not in (" x", " y", " z")] + ["revolute y", "continuous z", "prismatic x"]


@dataclass
class Case:
    """A mechanism in a random state, here and in Pinocchio."""

    model: Model
    theirs: Any
    q: Any
    v: Any
    a: Any

    def __post_init__(self) -> None:
        self.data = self.theirs.createData()

    @property
    def pq(self):
        return dl.q_to_pinocchio(self.model, self.q)


def mechanism(kinds, parents, seed, armature=False) -> Case:
    rng = np.random.default_rng(seed)
    theirs = pin.Model()
    for k, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        i = theirs.addJoint(parent, KINDS[kind](rng), random_placement(rng), f"{kind} {k}")
        theirs.appendBodyToJoint(i, random_inertia(rng), random_placement(rng))
        theirs.addFrame(pin.Frame(f"frame {k}", i, 0, random_placement(rng), pin.FrameType.OP_FRAME))
    if armature:
        theirs.armature = rng.uniform(0.1, 1.0, theirs.nv)
    model = dl.from_pinocchio(theirs)
    return Case(model, theirs, model.random_configuration(rng), *rng.normal(size=(2, model.nv)))


@st.composite
def mechanisms(draw):
    """One to seven joints of any kinds; a joint hangs on any one before it, so subtrees need not be contiguous."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=7))
    parents = [draw(st.integers(0, k)) for k in range(len(kinds))]
    return mechanism(kinds, parents, draw(st.integers(0, 2**32 - 1)), draw(st.booleans()))


@cache
def with_all_kinds(armature) -> Case:
    rng = np.random.default_rng(5)
    kinds = rng.permutation(EACH).tolist()
    return mechanism(kinds, [int(rng.integers(max(0, k - 2), k + 1)) for k in range(len(kinds))], 6, armature)


# --- what is compared: a name, ours, theirs, and what an error is measured against where the value may vanish ---------


def mass_matrix(c: Case):
    """Columns of inverse dynamics without gravity: Pinocchio's crba assumes that subtrees are contiguous."""
    m = c.theirs.copy()
    m.gravity = pin.Motion.Zero()
    d, still = m.createData(), np.zeros(m.nv)
    return np.stack([pin.rnea(m, d, c.pq, still, e) for e in np.eye(m.nv)], axis=1)


def check_rnea(c: Case, run):
    yield "torques", run(dl.rnea, c.q, c.v, c.a), pin.rnea(c.theirs, c.data, c.pq, c.v, c.a), 1


def check_external_forces(c: Case, run):
    forces = np.random.default_rng(1).normal(size=(c.theirs.njoints, 6))
    wrenches = pin.StdVec_Force()
    for f in forces:
        wrenches.append(pin.Force(f))
    there = pin.rnea(c.theirs, c.data, c.pq, c.v, c.a, wrenches)
    yield "torques", run(dl.rnea, c.q, c.v, c.a, forces=forces[1:]), there, 1


def check_crba(c: Case, run):
    yield "mass matrix", run(dl.crba, c.q), mass_matrix(c), 0


def check_aba(c: Case, run):
    tau = pin.rnea(c.theirs, c.data, c.pq, c.v, c.a)
    yield "accelerations", run(dl.aba, c.q, c.v, tau), c.a, np.linalg.cond(mass_matrix(c)) * 2e-3


def check_udu(c: Case, run):
    U, D = run(dl.udu, c.q)
    yield "U D Uᵀ", U * D @ U.T, mass_matrix(c), 0
    yield "below the diagonal of U", np.tril(U), np.eye(len(D)), 0


def check_kinematics(c: Case, run):
    pin.forwardKinematics(c.theirs, c.data, c.pq)
    R, p = run(dl.forward_kinematics, c.q)
    yield "rotations", R, np.array([M.rotation for M in c.data.oMi[1:]]), 1
    yield "positions", p, np.array([M.translation for M in c.data.oMi[1:]]), 1


def check_jacobians(c: Case, run):
    pin.computeJointJacobians(c.theirs, c.data, c.pq)
    pin.updateFramePlacements(c.theirs, c.data)
    name = f"frame {c.model.njoints - 1}"
    for reference, r in REFERENCES.items():
        there = pin.getFrameJacobian(c.theirs, c.data, c.theirs.getFrameId(name), r)
        yield reference, run(dl.frame_jacobian, c.q, frame=name, reference=reference), there, 1


def check_frame_biases(c: Case, run):
    """Accelerations at zero v̇: Pinocchio's time variation of Jacobians leaves out that of universal joints."""
    pin.forwardKinematics(c.theirs, c.data, c.pq, c.v, 0.0 * c.v)
    name = f"frame {c.model.njoints - 1}"
    k = c.theirs.getFrameId(name)
    for reference, r in REFERENCES.items():
        aligned = reference == "LOCAL_WORLD_ALIGNED"
        acceleration = pin.getFrameClassicalAcceleration if aligned else pin.getFrameAcceleration
        there = acceleration(c.theirs, c.data, k, r).vector
        ours = run(dl.frame_bias, c.q, c.v, frame=name, reference=reference)
        yield reference, ours, there, 1 + c.v @ c.v


def check_energies(c: Case, run):
    """½ vᵀ M v with Pinocchio's M: its own energy leaves out the rotors of joints about an axis of any direction."""
    yield "kinetic", run(dl.kinetic_energy, c.q, c.v), 0.5 * c.v @ mass_matrix(c) @ c.v, 1
    yield "potential", run(dl.potential_energy, c.q), pin.computePotentialEnergy(c.theirs, c.data, c.pq), 10


def check_centroid(c: Case, run):
    m, d = c.theirs, c.data
    yield "center", run(dl.center_of_mass, c.q), pin.centerOfMass(m, d, c.pq), 1
    yield "its jacobian", run(dl.center_of_mass_jacobian, c.q), pin.jacobianCenterOfMass(m, d, c.pq), 1
    there = pin.computeCentroidalMomentum(m, d, c.pq, c.v).vector
    yield "momentum", run(dl.centroidal_momentum, c.q, c.v), there, 1


def torque_changes(c: Case):
    """Derivatives of Pinocchio's inverse dynamics: its own analytical ones assume that subtrees are contiguous."""
    m, d = c.theirs, c.data
    by_q = jacobian(lambda x: pin.rnea(m, d, pin.integrate(m, c.pq, x), c.v, c.a), m.nv)
    return by_q, jacobian(lambda x: pin.rnea(m, d, c.pq, c.v + x, c.a), m.nv)


def check_rnea_derivatives(c: Case, run):
    ours, theirs = run(dl.rnea_derivatives, c.q, c.v, c.a), (*torque_changes(c), mass_matrix(c))
    for what, here, there in zip(("by q", "by v", "by a"), ours, theirs, strict=True):
        yield what, here, there, 1


def check_aba_derivatives(c: Case, run):
    M, (by_q, by_v) = mass_matrix(c), torque_changes(c)
    ours = run(dl.aba_derivatives, c.q, c.v, pin.rnea(c.theirs, c.data, c.pq, c.v, c.a))
    inverse = np.linalg.inv(M)
    largest = np.max(np.abs(inverse))
    for what, here, b in zip(("by q", "by v", "by tau"), ours, (-by_q, -by_v, np.eye(len(M))), strict=True):
        yield what, here, inverse @ b, np.linalg.cond(M) * 2e-3 + largest * (1 + np.max(np.abs(b)))


def check_regressor(c: Case, run):
    there = pin.computeJointTorqueRegressor(c.theirs, c.data, c.pq, c.v, c.a)
    yield "regressor", run(dl.torque_regressor, c.q, c.v, c.a), there, 1


def check_frame_derivatives(c: Case, run):
    m, d, name = c.theirs, c.data, f"frame {c.model.njoints - 1}"
    k = m.getFrameId(name)

    def moved(get, r):
        def motion(q, v, a):
            pin.forwardKinematics(m, d, q, v, a)
            pin.updateFramePlacements(m, d)
            return get(m, d, k, r).vector

        by_q = jacobian(lambda x: motion(pin.integrate(m, c.pq, x), c.v, c.a), m.nv)
        by_v = jacobian(lambda x: motion(c.pq, c.v + x, c.a), m.nv)
        return by_q, by_v, jacobian(lambda x: motion(c.pq, c.v, c.a + x), m.nv)

    for reference, r in REFERENCES.items():
        options = {"frame": name, "reference": reference}
        ours = run(dl.frame_velocity_derivatives, c.q, c.v, **options)
        for here, there in zip(ours, moved(pin.getFrameVelocity, r), strict=False):
            yield f"velocity, {reference}", here, there, 1
        for classical, get in ((False, pin.getFrameAcceleration), (True, pin.getFrameClassicalAcceleration)):
            ours = run(dl.frame_acceleration_derivatives, c.q, c.v, c.a, classical=classical, **options)
            for here, there in zip(ours, moved(get, r), strict=True):
                yield f"acceleration, {reference}, classical {classical}", here, there, 1 + c.v @ c.v


def check_integrate(c: Case, run):
    ours = dl.q_to_pinocchio(c.model, run(dl.integrate, c.q, c.v))
    yield "way left", pin.difference(c.theirs, ours, pin.integrate(c.theirs, c.pq, c.v)), np.zeros(c.model.nv), 1


def check_difference(c: Case, run):
    way = 1.7 * np.tanh(c.v)  # three components of it are below half a turn
    there = pin.integrate(c.theirs, c.pq, way)
    ours = run(dl.difference, c.q, unwrapped(c, dl.q_from_pinocchio(c.model, there), way))
    yield "way", ours, pin.difference(c.theirs, c.pq, there), 1


def unwrapped(c: Case, q, way):
    """Angles that Pinocchio cut to ±π, as they are after a way from c.q without cutting."""
    q = q.copy()
    for joint, i, j in zip(c.model.joints, c.model.q_starts, c.model.v_starts, strict=True):
        if isinstance(joint.kind, Revolute | Planar):
            last = joint.kind.nq - 1
            q[i + last] = c.q[i + last] + way[j + last]
    return q


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]
NAMES = [check.__name__.removeprefix("check_") for check in CHECKS]


def verify(c: Case, check, run) -> None:
    for what, ours, there, scale in check(c, run):
        theirs = np.reshape(there, np.shape(ours))  # Pinocchio's matrices of one column are vectors
        error = np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), scale)
        assert error <= 1e-10, f"{what}: {error:.1e} of {[joint.name for joint in c.model.joints]}"


def plainly(model):
    return lambda kernel, *arrays, **options: kernel.python(model, *arrays, **options)


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
@settings(max_examples=12, deadline=None, database=None)
@given(c=mechanisms())
def test_any_mechanism_agrees_with_pinocchio(check, c):
    verify(c, check, plainly(c.model))


@pytest.mark.parametrize("armature", [False, True], ids=["without armature", "with armature"])
@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_a_mechanism_with_all_kinds_of_joints_agrees_with_pinocchio(check, armature):
    c = with_all_kinds(armature)
    verify(c, check, plainly(c.model))


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_a_compiled_mechanism_with_all_kinds_of_joints_agrees_with_pinocchio(check):
    c = with_all_kinds(True)
    verify(c, check, lambda kernel, *arrays, **options: kernel(c.model, *arrays, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_joint_has_pinocchios_accelerations(kind):
    c = mechanism([kind], [0], 3)
    verify(c, check_aba, plainly(c.model))


# --- from Pinocchio and back ------------------------------------------------------------------------------------------


def test_configurations_survive_the_way_to_pinocchio_and_back():
    c = with_all_kinds(False)
    np.testing.assert_allclose(dl.q_from_pinocchio(c.model, c.pq), c.q, rtol=0, atol=1e-15)


def test_configurations_of_pinocchio_survive_the_way_here_and_back():
    c = with_all_kinds(False)
    np.testing.assert_allclose(dl.q_to_pinocchio(c.model, dl.q_from_pinocchio(c.model, c.pq)), c.pq, rtol=0, atol=1e-15)


def test_batches_of_configurations_are_converted_row_by_row():
    c = with_all_kinds(False)
    rng = np.random.default_rng(2)
    q = np.array([[c.model.random_configuration(rng) for _ in range(3)] for _ in range(2)])
    theirs = dl.q_to_pinocchio(c.model, q)
    assert theirs.shape == (2, 3, c.theirs.nq)
    np.testing.assert_array_equal(theirs[1, 2], dl.q_to_pinocchio(c.model, q[1, 2]))
    np.testing.assert_array_equal(
        dl.q_from_pinocchio(c.model, theirs)[1, 2], dl.q_from_pinocchio(c.model, theirs[1, 2])
    )


def test_a_configuration_with_too_many_numbers_is_refused():
    c = with_all_kinds(False)
    with pytest.raises(ValueError, match="numbers in Pinocchio's layout"):
        dl.q_from_pinocchio(c.model, np.zeros(c.theirs.nq + 1))


def test_neutral_is_pinocchios():
    c = with_all_kinds(False)
    np.testing.assert_array_equal(dl.q_to_pinocchio(c.model, c.model.neutral()), pin.neutral(c.theirs))


def test_a_continuous_joint_of_pinocchio_keeps_its_axis():
    theirs = pin.Model()
    theirs.addJoint(0, continuous_about(np.array([1.0, 2.0, 2.0]) / 3), pin.SE3.Identity(), "j")
    assert dl.from_pinocchio(theirs).joints[0].kind == Revolute((1 / 3, 2 / 3, 2 / 3), continuous=True)


def test_a_joint_of_pinocchio_without_counterpart_is_refused():
    theirs = pin.Model()
    theirs.addJoint(0, pin.JointModelSphericalZYX(), pin.SE3.Identity(), "j")
    with pytest.raises(dl.DelassusError, match="SphericalZYX has no counterpart"):
        dl.from_pinocchio(theirs)


# --- cylindrical joints, which Pinocchio has none of ------------------------------------------------------------------


def placement(M) -> Placement:
    return Placement.of(M.rotation, M.translation)


def body(Y) -> Inertia:
    return Inertia.of(Y.mass, Y.lever, Y.inertia)


@cache
def cylindrical() -> tuple[Case, Case]:
    """A revolute, a cylindrical and a spherical joint; Pinocchio's with a prismatic and a revolute one for the second.

    The first case has Pinocchio's bodies without the one in between, the second the model with it.
    """
    rng = np.random.default_rng(8)
    axis = random_axis(rng)
    mounts, inertias = [random_placement(rng) for _ in range(3)], [random_inertia(rng) for _ in range(3)]
    kinds = (Revolute((1.0, 0.0, 0.0)), Cylindrical(tuple(axis.tolist())), Spherical())
    joints = [Joint(f"j{k}", kinds[k], k - 1, placement(mounts[k]), body(inertias[k])) for k in range(3)]
    model = Model("with a cylindrical joint", tuple(joints), (Frame("frame 2", 2),))
    theirs, parent = pin.Model(), 0
    for kind, mount, inertia in (
        (pin.JointModelRX(), mounts[0], inertias[0]),
        (pin.JointModelPrismaticUnaligned(axis), mounts[1], pin.Inertia.Zero()),
        (pin.JointModelRevoluteUnaligned(axis), pin.SE3.Identity(), inertias[1]),
        (pin.JointModelSpherical(), mounts[2], inertias[2]),
    ):
        parent = theirs.addJoint(parent, kind, mount, f"joint {parent}")
        theirs.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    theirs.addFrame(pin.Frame("frame 2", parent, 0, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    q, (v, a) = model.random_configuration(rng), rng.normal(size=(2, model.nv))
    return Case(model, theirs, q, v, a), Case(dl.from_pinocchio(theirs), theirs, q, v, a)


BY_BODY = (check_kinematics, check_external_forces, check_regressor)  # these have something per joint


@pytest.mark.parametrize("check", [c for c in CHECKS if c not in BY_BODY], ids=lambda c: c.__name__[6:])
def test_a_cylindrical_joint_is_a_prismatic_and_a_revolute_one(check):
    c, _ = cylindrical()
    verify(c, check, plainly(c.model))


def test_bodies_behind_a_cylindrical_joint_are_where_pinocchio_has_them():
    c, _ = cylindrical()
    pin.forwardKinematics(c.theirs, c.data, c.q)
    _, p = dl.forward_kinematics.python(c.model, c.q)
    np.testing.assert_allclose(p, [c.data.oMi[k].translation for k in (1, 3, 4)], atol=1e-14)


def test_forces_on_bodies_behind_a_cylindrical_joint_give_pinocchios_torques():
    c, two = cylindrical()
    forces = np.random.default_rng(1).normal(size=(4, 6))
    forces[1] = 0.0
    theirs = dl.rnea.python(two.model, c.q, c.v, c.a, forces=forces)
    ours = dl.rnea.python(c.model, c.q, c.v, c.a, forces=forces[[0, 2, 3]])
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


# --- axes -------------------------------------------------------------------------------------------------------------

LONG = (0.0, -3.0, 4.0)
WITH_AXES: dict[str, Callable[..., JointKind]] = {
    "revolute": Revolute,
    "prismatic": Prismatic,
    "helical": Helical,
    "cylindrical": Cylindrical,
    "planar": Planar,
    "universal": Universal,
}


@pytest.mark.parametrize("name", WITH_AXES)
def test_the_length_of_an_axis_does_not_matter(name):
    kind = WITH_AXES[name]
    assert kind(LONG) == kind((0.0, -0.6, 0.8))


@pytest.mark.parametrize("name", WITH_AXES)
@pytest.mark.parametrize("length", [0.0, float("nan"), float("inf")], ids=str)
def test_an_axis_without_direction_is_refused(name, length):
    with pytest.raises(dl.DelassusError, match="has no direction"):
        WITH_AXES[name]((0.0, length, 0.0))


@pytest.mark.parametrize("length", [5e-324, 1e-310, 1e-160, 1e300])
def test_an_axis_of_any_length_has_length_one(length):
    np.testing.assert_allclose(Revolute((length, -length, 0.0)).axis, [np.sqrt(0.5), -np.sqrt(0.5), 0.0], atol=2e-16)


def test_both_axes_of_a_universal_joint_are_directions():
    assert Universal(second=LONG).second == (0.0, -0.6, 0.8)


def test_a_unit_axis_is_kept_to_the_bit():
    axis = tuple(random_axis(np.random.default_rng(0)).tolist())
    assert Revolute(axis).axis == axis


def test_a_long_axis_moves_as_pinocchios_unit_axis():
    c = mechanism(["revolute y"], [0], 1)
    kind = Revolute((0.0, 5.0, 0.0))
    (joint,) = c.model.joints
    model = Model("long", (Joint("j", kind, placement=joint.placement, inertia=joint.inertia),))
    np.testing.assert_allclose(dl.rnea.python(model, c.q, c.v, c.a), pin.rnea(c.theirs, c.data, c.pq, c.v, c.a))


@pytest.mark.parametrize("axis", [X, Y, Z, -X, -Y, -Z, [1.0, 2.0, 2.0]], ids=str)
def test_a_planar_joint_moves_across_its_normal(axis):
    normal = np.array(axis) / np.linalg.norm(axis)
    model = Model("plane", (Joint("j", Planar(tuple(normal.tolist()))),))
    R, p = dl.forward_kinematics.python(model, np.array([0.3, -0.7, 0.5]))
    np.testing.assert_allclose([p[0] @ normal, np.linalg.norm(p[0])], [0.0, np.hypot(0.3, 0.7)], atol=1e-15)
    np.testing.assert_allclose(R[0], pin.AngleAxis(0.5, normal).matrix(), atol=1e-15)


@pytest.mark.parametrize("axis", [X, Y, Z, -X, -Y, -Z], ids=str)
def test_the_frame_of_an_axis_is_a_rotation_at_any_distance_from_a_coordinate_axis(axis):
    tilt = np.random.default_rng(0).normal(size=(17, 3)) * 10.0 ** np.arange(-16.0, 1.0)[:, None]
    for direction in [axis, *(axis + tilt)]:
        near = direction / np.linalg.norm(direction)
        R = aligned(tuple(near.tolist()))
        np.testing.assert_array_equal(R[:, 2], near)
        np.testing.assert_allclose(R.T @ R, np.eye(3), rtol=0, atol=1e-15)
        assert np.linalg.det(R) > 0.0


# --- moving on the manifold -------------------------------------------------------------------------------------------

MANIFOLDS: dict[str, Callable[[], JointKind]] = {"free": Free, "spherical": Spherical, "planar": Planar}
ANGLES = [0.0, 1e-300, 1e-150, 1e-16, 1e-9, 1e-6, 9.9e-4, 1.1e-3, 1e-2, 0.1, 0.199, 0.2, 0.499, 0.501, 1.0, 3.0, 3.14]


def manifold(name) -> Case:
    return mechanism([name], [0], 11)


def way(name, angle):
    """A tangent vector that turns by an angle [rad]."""
    turn = angle * np.array([2.0, -1.0, 2.0]) / 3.0
    return {
        "spherical": turn,
        "free": np.concatenate([[0.3, -0.2, 0.5], turn]),
        "planar": np.array([0.3, -0.2, angle]),
    }[name]


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", MANIFOLDS)
def test_difference_finds_the_way_that_integrate_went(name, angle):
    c, w = manifold(name), way(name, angle)
    found = dl.difference.python(c.model, c.q, dl.integrate.python(c.model, c.q, w))
    np.testing.assert_allclose(found, w, rtol=0, atol=1e-12)


def exponential(name, w):
    """The placement that a tangent vector leads to from the identity: a matrix exponential of 40 digits."""
    lin, ang = {
        "spherical": (np.zeros(3), w),
        "free": (w[:3], w[-3:]),
        "planar": ([w[0], w[1], 0.0], np.array([0.0, 0.0, w[-1]])),
    }[name]
    with mpmath.workdps(40):
        generator = np.block([[pin.skew(ang), np.reshape(lin, (3, 1))], [np.zeros((1, 4))]])
        return np.array(mpmath.expm(mpmath.matrix(generator.tolist())).tolist(), float)


def placed(c: Case, q):
    """The body's placement (4, 4) in the joint's frame."""
    pin.forwardKinematics(c.theirs, c.data, dl.q_to_pinocchio(c.model, q))
    return c.data.joints[1].M.homogeneous


@pytest.mark.parametrize("angle", [*ANGLES, np.pi, 4.0, 2 * np.pi, 20.0])
@pytest.mark.parametrize("name", MANIFOLDS)
def test_integrate_follows_the_matrix_exponential(name, angle):
    c, w = manifold(name), way(name, angle)
    reached = placed(c, dl.integrate.python(c.model, c.q, w))
    np.testing.assert_allclose(reached, placed(c, c.q) @ exponential(name, w), rtol=0, atol=2e-15 * (1.0 + angle))


def turned_on(c: Case, turn):
    """A planar configuration that is some way off and turned by an angle [rad], over half a turn as it may be."""
    return c.q + np.array([0.3, -0.2, turn])


@pytest.mark.parametrize("turn", [3.2, 2 * np.pi - 0.1, 2 * np.pi, 7.0, 20.0, -3.2, -20.0, -1e4])
def test_the_difference_of_planar_configurations_is_pinocchios_beyond_half_a_turn(turn):
    c = manifold("planar")
    there = turned_on(c, turn)
    expected = pin.difference(c.theirs, dl.q_to_pinocchio(c.model, c.q), dl.q_to_pinocchio(c.model, there))
    found = dl.difference.python(c.model, c.q, there)
    np.testing.assert_allclose(found, expected, rtol=0, atol=4e-16 * (1.0 + abs(turn)))


@pytest.mark.parametrize("turn", [np.pi, -np.pi, 3.2, 2 * np.pi - 1e-3, 2 * np.pi, 2 * np.pi + 1e-9, -20.0, 1e4])
def test_the_difference_of_planar_configurations_leads_there(turn):
    c = manifold("planar")
    there = turned_on(c, turn)
    reached = dl.integrate.python(c.model, c.q, dl.difference.python(c.model, c.q, there))
    np.testing.assert_allclose(placed(c, reached), placed(c, there), rtol=0, atol=4e-16 * (1.0 + abs(turn)))


def test_a_planar_difference_of_less_than_half_a_turn_is_the_plain_one_to_the_bit():
    model = manifold("planar").model
    for turn in (1e-9, 0.1, 3.14, -np.pi, np.pi):
        assert dl.difference.python(model, np.zeros(3), np.array([0.3, -0.2, turn]))[2] == turn


@pytest.mark.parametrize("below", [1e-3, 1e-6, 1e-9, 1e-12, 0.0])
@pytest.mark.parametrize("name", ["free", "spherical"])
def test_a_difference_of_nearly_half_a_turn_leads_there(name, below):
    c = manifold(name)
    there = dl.integrate.python(c.model, c.q, way(name, np.pi - below))
    reached = dl.integrate.python(c.model, c.q, dl.difference.python(c.model, c.q, there))
    reached[-4:] *= np.sign(reached[-4:] @ there[-4:])
    np.testing.assert_allclose(reached, there, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["free", "spherical"])
def test_a_difference_is_the_shorter_way_round(name):
    c = manifold(name)
    there = dl.integrate.python(c.model, c.q, way(name, 2 * np.pi - 1.0))
    turn = dl.difference.python(c.model, c.q, there)[-3:]
    np.testing.assert_allclose(turn, way(name, -1.0)[-3:], atol=1e-13)


@pytest.mark.parametrize("name", ["free", "spherical"])
def test_opposite_quaternions_do_not_differ(name):
    c = manifold(name)
    there = c.q.copy()
    there[-4:] *= -1.0
    np.testing.assert_allclose(dl.difference.python(c.model, c.q, there), 0.0, atol=1e-15)


def test_an_angle_is_not_wrapped():
    c = mechanism(["continuous z"], [0], 11)
    np.testing.assert_array_equal(dl.difference.python(c.model, np.zeros(1), np.array([20.0])), [20.0])


@pytest.mark.parametrize("name", ["free", "spherical"])
def test_steps_keep_quaternions_at_length_one(name):
    c = manifold(name)
    q = c.q
    for _ in range(200):
        q = dl.integrate.python(c.model, q, way(name, 0.7))
    assert np.linalg.norm(q[-4:]) == pytest.approx(1.0, abs=4e-16)


# --- quaternions of another length ------------------------------------------------------------------------------------


def stretched(c: Case):
    q = c.q.copy()
    q[-4:] *= 1.5
    return q


@pytest.mark.parametrize("name", ["free", "spherical"])
def test_a_quaternion_that_is_not_of_length_one_is_no_rotation(name):
    c = manifold(name)
    R, _ = dl.forward_kinematics.python(c.model, stretched(c))
    assert np.max(np.abs(R[0] @ R[0].T - np.eye(3))) > 0.1


@pytest.mark.parametrize("name", ["free", "spherical"])
def test_normalize_repairs_a_quaternion(name):
    c = manifold(name)
    np.testing.assert_allclose(dl.normalize.python(c.model, stretched(c)), c.q, rtol=0, atol=4e-16)


def test_normalize_leaves_all_other_coordinates_alone():
    c = mechanism([kind for kind in EACH if kind not in ("free", "spherical")], [0] * (len(EACH) - 2), 1)
    np.testing.assert_array_equal(dl.normalize.python(c.model, c.q), c.q)


def test_all_quaternions_of_a_mechanism_are_normalised_as_pinocchio_does():
    c = with_all_kinds(False)
    q = c.q.copy()
    for joint, i in zip(c.model.joints, c.model.q_starts, strict=True):
        if isinstance(joint.kind, Free | Spherical):
            q[i + joint.kind.nq - 4 : i + joint.kind.nq] *= 3.0
    there = pin.normalize(c.theirs, dl.q_to_pinocchio(c.model, q))
    np.testing.assert_allclose(dl.q_to_pinocchio(c.model, dl.normalize(c.model, q)), there, rtol=0, atol=1e-15)


def test_translations_have_no_quaternion_to_normalise():
    assert Translation().nq == Translation().nv


# --- joints of several elements ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SlidingBall(_Kind):
    """A ball joint that slides, then a free flight: no kind of the package has quaternions behind other coordinates."""

    label = "sliding ball"

    @property
    def elements(self):
        return ((Motion.PRISMATIC, (0.0, 0.0, 1.0), 0.0), *Spherical().elements, *Free().elements)


COMPOSED = Model("composed", (Joint("j", SlidingBall()),))
APART = Model("apart", (Joint("a", Prismatic()), Joint("b", Spherical(), 0), Joint("c", Free(), 1)))


def test_a_joint_of_several_elements_has_their_neutral_coordinates():
    np.testing.assert_array_equal(COMPOSED.neutral(), APART.neutral())


def test_a_joint_of_several_elements_has_their_random_coordinates():
    limits = (-0.5,) * 12
    limited = Model("limited", (Joint("j", SlidingBall(), lower=limits, upper=tuple(-x for x in limits)),))
    q = limited.random_configuration(np.random.default_rng(0))
    np.testing.assert_allclose([np.linalg.norm(q[1:5]), np.linalg.norm(q[8:])], 1.0, atol=1e-15)
    assert np.max(np.abs(q[[0, 5, 6, 7]])) <= 0.5


def test_a_joint_of_several_elements_is_converted_to_mujocos_layout_as_they_are():
    rng = np.random.default_rng(0)
    q, v, a = APART.random_configuration(rng), *rng.normal(size=(2, 10))
    np.testing.assert_array_equal(dl.q_to_mujoco(COMPOSED, q), dl.q_to_mujoco(APART, q))
    np.testing.assert_array_equal(dl.a_to_mujoco(COMPOSED, q, v, a), dl.a_to_mujoco(APART, q, v, a))


def test_springs_of_a_joint_of_several_elements_are_theirs():
    stiffness = tuple(np.arange(1.0, 11.0).tolist())
    composed = Model("composed", (replace(COMPOSED.joints[0], stiffness=stiffness),))
    parts = ((0, 1), (1, 4), (4, 10))
    apart = [replace(joint, stiffness=stiffness[i:j]) for joint, (i, j) in zip(APART.joints, parts, strict=True)]
    rng = np.random.default_rng(0)
    q, v = APART.random_configuration(rng), np.zeros(10)
    expected = dl.passive_forces.python(Model("apart", tuple(apart)), q, v)
    np.testing.assert_array_equal(dl.passive_forces.python(composed, q, v), expected)
