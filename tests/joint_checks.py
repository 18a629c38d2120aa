"""Every algorithm compared with Pinocchio, on a mechanism in a state.

A check yields a name, ours, theirs, and what an error is measured against where the value may vanish. A relative
error in the infinity norm of 1e-10 is allowed, more for accelerations where the mass matrix is ill conditioned.
"""

import mpmath
import numpy as np
import pinocchio as pin

import delassus as dl
from delassus.model.joints import (
    Planar,
    Revolute,
)
from differences import jacobian
from joint_cases import Case, mass_matrix

REFERENCES = {"LOCAL": pin.LOCAL, "WORLD": pin.WORLD, "LOCAL_WORLD_ALIGNED": pin.LOCAL_WORLD_ALIGNED}


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
