"""One time step of a robot in contact: scenes, stages, contact laws, schemes and impacts.

`contact_dynamics`, `compliant_step` and `Simulation` are made of the parts in here.
"""
