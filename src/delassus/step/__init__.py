"""One step of time of a robot in contact: scenes, stages, laws of contact, schemes and impacts.

`contact_dynamics`, `compliant_step` and `Simulation` are made of the parts in here.
"""
