"""Simulation of robots on the ground, one or thousands at a time; a control period is one kernel call."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.simulation.bound.robot import BoundRobot
    from delassus.simulation.controls import Delayed
    from delassus.simulation.ground import Ground
    from delassus.simulation.inspection import Accelerations, GroundContacts
    from delassus.simulation.options import GroundPlane, HeightField, Recording, StepSolver
    from delassus.simulation.policies.policy import CompiledPolicy
    from delassus.simulation.pushes import Push
    from delassus.simulation.sensors.readout import Sensor
    from delassus.simulation.sensors.sensors import Sensors
    from delassus.simulation.simulation import Simulation
    from delassus.simulation.state import State
    from delassus.simulation.world_shapes import ground_of
    from delassus.step.actuators.actuator_forces import actuator_forces
    from delassus.step.actuators.servos import motors, position_servos, velocity_servos, with_lag
    from delassus.step.flags import Mark
    from delassus.step.selection.options import ContactSelection

__all__ = [
    "Accelerations",
    "BoundRobot",
    "CompiledPolicy",
    "ContactSelection",
    "Delayed",
    "Ground",
    "GroundContacts",
    "GroundPlane",
    "HeightField",
    "Mark",
    "Push",
    "Recording",
    "Sensor",
    "Sensors",
    "Simulation",
    "State",
    "StepSolver",
    "actuator_forces",
    "ground_of",
    "motors",
    "position_servos",
    "velocity_servos",
    "with_lag",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "step.actuators.actuator_forces": "actuator_forces",
            "step.actuators.servos": "motors position_servos velocity_servos with_lag",
            "simulation.bound.robot": "BoundRobot",
            "simulation.controls": "Delayed",
            "simulation.ground": "Ground",
            "simulation.inspection": "Accelerations GroundContacts",
            "simulation.options": "GroundPlane HeightField Recording StepSolver",
            "simulation.world_shapes": "ground_of",
            "simulation.policies.policy": "CompiledPolicy",
            "simulation.pushes": "Push",
            "simulation.sensors.readout": "Sensor",
            "simulation.sensors.sensors": "Sensors",
            "simulation.simulation": "Simulation",
            "simulation.state": "State",
            "step.flags": "Mark",
            "step.selection.options": "ContactSelection",
        },
    )
