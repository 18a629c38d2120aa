"""Control: inverse dynamics under constraints, tasks, quadratic programs, linear models, planning."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.control.inverse.actuated import ActuatedMechanism
    from delassus.control.inverse.dynamics import actuated_inverse_dynamics, inverse_dynamics
    from delassus.control.inverse.equilibrium import Equilibrium, equilibrium, gravity_compensation
    from delassus.control.inverse.options import DistributionOptions, InverseOptions, LinearizationOptions
    from delassus.control.inverse.result import ControlStatus, InverseDynamics
    from delassus.control.inverse.weights import InverseInputs
    from delassus.control.linear.linearization import Linearization, linearize
    from delassus.control.linear.lqr import Regulator, lqr
    from delassus.control.operational.differential import TaskVelocities, differential_inverse_kinematics
    from delassus.control.operational.dynamics import TaskDynamics, task_inverse_dynamics
    from delassus.control.operational.kinematics import TaskPose, inverse_kinematics
    from delassus.control.operational.space import OperationalSpace, operational_space
    from delassus.control.operational.task import CenterOfMassTask, FrameTask, MomentumTask, PostureTask, Task
    from delassus.control.operational.tasks import Tasks, task_bias, task_error, task_jacobian
    from delassus.control.qp.quadratic_program import QP, ConeRows, EqualityRows, InequalityRows
    from delassus.control.qp.solution import QPSolution
    from delassus.control.qp.status import QPStatus
    from delassus.control.reactive.control import ReactiveControl
    from delassus.control.reactive.reaction import Reaction
    from delassus.control.reactive.supports import Support
    from delassus.control.reactive.tasks import (
        FollowCenterOfMass,
        FollowForce,
        FollowFrame,
        FollowMomentum,
        FollowPosture,
        Nominal,
    )
    from delassus.control.sampling.options import BestSample, CrossEntropy, PathIntegral, SearchOptions, SplineOptions
    from delassus.control.sampling.plan import Plan, PlanStatus
    from delassus.control.sampling.sampling import Sampling

__all__ = [
    "QP",
    "ActuatedMechanism",
    "BestSample",
    "CenterOfMassTask",
    "ConeRows",
    "ControlStatus",
    "CrossEntropy",
    "DistributionOptions",
    "EqualityRows",
    "Equilibrium",
    "FollowCenterOfMass",
    "FollowForce",
    "FollowFrame",
    "FollowMomentum",
    "FollowPosture",
    "FrameTask",
    "InequalityRows",
    "InverseDynamics",
    "InverseInputs",
    "InverseOptions",
    "Linearization",
    "LinearizationOptions",
    "MomentumTask",
    "Nominal",
    "OperationalSpace",
    "PathIntegral",
    "Plan",
    "PlanStatus",
    "PostureTask",
    "QPSolution",
    "QPStatus",
    "Reaction",
    "ReactiveControl",
    "Regulator",
    "Sampling",
    "SearchOptions",
    "SplineOptions",
    "Support",
    "Task",
    "TaskDynamics",
    "TaskPose",
    "TaskVelocities",
    "Tasks",
    "actuated_inverse_dynamics",
    "differential_inverse_kinematics",
    "equilibrium",
    "gravity_compensation",
    "inverse_dynamics",
    "inverse_kinematics",
    "linearize",
    "lqr",
    "operational_space",
    "task_bias",
    "task_error",
    "task_inverse_dynamics",
    "task_jacobian",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "control.qp.quadratic_program": "ConeRows EqualityRows InequalityRows QP",
            "control.qp.solution": "QPSolution",
            "control.qp.status": "QPStatus",
            "control.reactive.control": "ReactiveControl",
            "control.reactive.reaction": "Reaction",
            "control.reactive.supports": "Support",
            "control.reactive.tasks": "FollowCenterOfMass FollowForce FollowFrame FollowMomentum FollowPosture Nominal",
            "control.sampling.options": "BestSample CrossEntropy PathIntegral SearchOptions SplineOptions",
            "control.sampling.plan": "Plan PlanStatus",
            "control.sampling.sampling": "Sampling",
            "control.inverse.actuated": "ActuatedMechanism",
            "control.inverse.dynamics": "actuated_inverse_dynamics inverse_dynamics",
            "control.inverse.equilibrium": "Equilibrium equilibrium gravity_compensation",
            "control.inverse.options": "DistributionOptions InverseOptions LinearizationOptions",
            "control.inverse.result": "ControlStatus InverseDynamics",
            "control.inverse.weights": "InverseInputs",
            "control.linear.linearization": "Linearization linearize",
            "control.linear.lqr": "Regulator lqr",
            "control.operational.differential": "TaskVelocities differential_inverse_kinematics",
            "control.operational.dynamics": "TaskDynamics task_inverse_dynamics",
            "control.operational.kinematics": "TaskPose inverse_kinematics",
            "control.operational.space": "OperationalSpace operational_space",
            "control.operational.task": "CenterOfMassTask FrameTask MomentumTask PostureTask Task",
            "control.operational.tasks": "Tasks task_bias task_error task_jacobian",
        },
        renamed={
            "Actuated": "ActuatedMechanism",
            "ProgrammeSolution": "QPSolution",
            "ProgrammeStatus": "QPStatus",
            "QuadraticProgramme": "QP",
        },
    )
