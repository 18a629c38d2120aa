"""Andrews' squeezer: seven bodies in a plane, three loops, a spring and a driving moment.

Data and reference solution: Test Set for Initial Value Problem Solvers (F. Mazzia, C. Magherini), problem "Andrews";
E. Hairer, G. Wanner, Solving Ordinary Differential Equations II (1996), VII.7.
"""

import numpy as np

import delassus as dl
import delassus.numpy as dnp
from delassus.model.joints import Revolute
from delassus.model.model import Model
from delassus.model.parts import WORLD, Frame, Joint
from delassus.model.placement import Inertia, Placement

D, E, U, ZF, ZT, RR, SS = 28e-3, 2e-2, 4e-2, 2e-2, 4e-2, 7e-3, 35e-3  # m
DA, EA, RA, FA = 115e-4, 1421e-5, 92e-5, 1421e-5
SA, SB, SC, SD = 1874e-5, 1043e-5, 18e-3, 2e-2
TA, TB, UA, UB = 2308e-5, 916e-5, 1228e-5, 449e-5
A, B, C = np.array([-0.06934, -0.00227]), np.array([-0.03635, 0.03273]), np.array([0.014, 0.072])
STIFFNESS, RELAXED, MOMENT = 4530.0, 0.07785, 0.033  # N/m, m, N·m

# Angles of the joints in the order of the model: β, θ, γ, δ, φ, ε, ω.
START = np.array(
    [
        -0.0617138900142764496,
        0.0,
        0.455279819163070380,
        0.487364979543842550,
        0.222668390165885885,
        1.23054744454982119,
        -0.222668390165885885,
    ]
)
REFERENCE = np.array(
    [
        0.1581077119629904e2,
        -0.1575637105984298e2,
        0.4082224013073101e-1,
        0.5244099658805304,
        -0.5347301163226948,
        0.1048080741042263e1,
        0.5347301163226948,
    ]
)
"""At 0.03 s."""


def link(name, parent, at, mass, centre, moment) -> Joint:
    """A body that turns about z."""
    inertia = Inertia.of(mass, (*centre, 0.0), np.diag([moment, moment, moment]))
    return Joint(name, Revolute((0.0, 0.0, 1.0)), parent, Placement.of(p=(*at, 0.0)), inertia)


def squeezer() -> dl.Mechanism:
    """The mechanism: bodies K1 and K2, K3, K5 and K4, K7 and K6, whose ends meet in one point."""
    joints = (
        link("beta", WORLD, (0.0, 0.0), 0.04325, (RA, 0.0), 2.194e-6),
        link("theta", 0, (RR, 0.0), 0.00365, (-DA, 0.0), 4.410e-7),
        link("gamma", WORLD, B, 0.02373, (SA, SB), 5.255e-6),
        link("delta", WORLD, A, 0.07050, (TA, TB), 1.169e-5),
        link("phi", 3, (ZT, 0.0), 0.00706, (0.0, EA - E), 5.667e-7),
        link("epsilon", WORLD, A, 0.05498, (UA, UB), 1.912e-5),
        link("omega", 5, (0.0, -U), 0.00706, (ZF - FA, 0.0), 5.667e-7),
    )
    ends = {"K2": (1, (-D, 0.0)), "K3": (2, (0.0, -SS)), "K4": (4, (0.0, -E)), "K6": (6, (ZF, 0.0))}
    frames = tuple(Frame(name, body, Placement.of(p=(*place, 0.0))) for name, (body, place) in ends.items())
    model = Model("squeezer", joints, frames)
    return dl.Mechanism(model, [dl.Point("K2", other, rows="xy") for other in ("K3", "K4", "K6")])


def forces(time, q, v):
    """The moment on K1, and the spring from a point of K3 to C."""
    c, s = dnp.cos(q[2]), dnp.sin(q[2])
    arm = dnp.stack([SD * c + SC * s, SD * s - SC * c])
    way = arm + (B - C)
    length = dnp.sqrt(way @ way)
    pull = -STIFFNESS * (length - RELAXED) / length * way
    tau = dnp.zeros(7)
    tau[0] = MOMENT
    tau[2] = arm[0] * pull[1] - arm[1] * pull[0]
    return tau
