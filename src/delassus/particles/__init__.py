"""Large sparse systems with up to a million unknowns: ropes, nets, cloth, towers. Needs SciPy."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.particles.builders.blocks import block, solids
    from delassus.particles.builders.bricks import tower
    from delassus.particles.builders.ropes import bends, chain, ribbon, rope
    from delassus.particles.builders.sheets import Fabric, cloth, net
    from delassus.particles.description.bodies import Bricks
    from delassus.particles.description.elements import Elements
    from delassus.particles.description.kinds import ElementKind, deformation, energy
    from delassus.particles.description.library import area, bend, fold, solid, spring, strain, stretch, volume
    from delassus.particles.description.obstacles import Box, Plane, Sphere
    from delassus.particles.description.particles import Environment, Motion, Particles, Surface
    from delassus.particles.motion.coupling import CoupledStep, Grip, coupled_step
    from delassus.particles.motion.energy import (
        total_elastic_energy,
        total_energy,
        total_kinetic_energy,
        total_momentum,
    )
    from delassus.particles.motion.options import ContactSolver, ParticleScheme, RowSolver
    from delassus.particles.motion.rest import Rest, at_rest
    from delassus.particles.motion.state import ParticleState, ParticleStep, initial_state
    from delassus.particles.motion.step import Stepper, particle_step
    from delassus.particles.motion.trajectory import ParticleTrajectory, simulate_particles

__all__ = [
    "Box",
    "Bricks",
    "ContactSolver",
    "CoupledStep",
    "ElementKind",
    "Elements",
    "Environment",
    "Fabric",
    "Grip",
    "Motion",
    "ParticleScheme",
    "ParticleState",
    "ParticleStep",
    "ParticleTrajectory",
    "Particles",
    "Plane",
    "Rest",
    "RowSolver",
    "Sphere",
    "Stepper",
    "Surface",
    "area",
    "at_rest",
    "bend",
    "bends",
    "block",
    "chain",
    "cloth",
    "coupled_step",
    "deformation",
    "energy",
    "fold",
    "initial_state",
    "net",
    "particle_step",
    "ribbon",
    "rope",
    "simulate_particles",
    "solid",
    "solids",
    "spring",
    "strain",
    "stretch",
    "total_elastic_energy",
    "total_energy",
    "total_kinetic_energy",
    "total_momentum",
    "tower",
    "volume",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "particles.builders.blocks": "block solids",
            "particles.builders.bricks": "tower",
            "particles.builders.ropes": "bends chain ribbon rope",
            "particles.builders.sheets": "Fabric cloth net",
            "particles.description.bodies": "Bricks",
            "particles.description.elements": "Elements",
            "particles.description.kinds": "ElementKind deformation energy",
            "particles.description.library": "area bend fold solid spring strain stretch volume",
            "particles.description.obstacles": "Box Plane Sphere",
            "particles.description.particles": "Environment Motion Particles Surface",
            "particles.motion.coupling": "CoupledStep Grip coupled_step",
            "particles.motion.energy": "total_elastic_energy total_energy total_kinetic_energy total_momentum",
            "particles.motion.options": "ContactSolver ParticleScheme RowSolver",
            "particles.motion.rest": "Rest at_rest",
            "particles.motion.state": "ParticleState ParticleStep initial_state",
            "particles.motion.step": "Stepper particle_step",
            "particles.motion.trajectory": "ParticleTrajectory simulate_particles",
        },
        renamed={
            "elastic_energy_of": "total_elastic_energy",
            "energy_of": "total_energy",
            "kinetic_energy_of": "total_kinetic_energy",
            "momentum_of": "total_momentum",
            "start_of": "initial_state",
        },
    )
