"""Many robots for long, in little memory."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
from pathlib import Path

import numpy as np
import delassus as dl
from delassus.simulation import position_servos

robot = dl.load("quadruped")
home = robot.posture("home")
servos = position_servos(robot, 200.0, 10.0)
sim = dl.Simulation(robot, actuators=servos, touching="*_calf_1", max_limits=0)
q0 = np.tile(home, (16384, 1))
q0[:, 2] += np.random.default_rng(0).uniform(0.0, 0.1, 16384)
log = sim.run(q0, control=home[7:], steps=1000, every=10)
assert log.q.shape == (101, 16384, 19) and np.isfinite(log.energy).all() and not (log.status & 1).any()
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line).split()[1])
"""


@pytest.mark.slow
def test_sixteen_thousand_quadrupeds_make_a_thousand_steps_in_two_gigabytes():
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of this process alone is read from Linux: getrusage counts that of its parent, too")
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True, timeout=600)
    assert 1024 * int(done.stdout) < 2e9
