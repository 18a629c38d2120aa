"""`python -m benchmarks [--save]`: run the benchmarks, print them; --save also puts them into docs/performance.md."""

import os
import platform
import sys
from datetime import date
from pathlib import Path

import llvmlite
import numpy as np

from benchmarks import (
    closed_loops,
    compiler,
    constrained,
    constrained_derivatives,
    contact,
    control,
    delassus,
    derivatives,
    dynamics,
    large,
    loops,
    parameters,
    reactive,
    sampling,
    simulation,
    single,
    stepping,
    stepping_compliant,
)
from delassus.compiler.backends.target import Target

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def cpu_name() -> str:
    """The processor's name as the system gives it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def main() -> None:
    """Run and print."""
    target = Target.host()
    header = (
        f"Measured by `make bench` on {date.today()}: {cpu_name()} (LLVM's {target.cpu}, {target.lanes} lanes), "
        f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"llvmlite {llvmlite.__version__}.\n"
    )
    parts = (
        header,
        "## Robot dynamics\n",
        dynamics.run(),
        derivatives.run(),
        single.run(),
        parameters.run(),
        "## Constrained dynamics\n",
        constrained.run(),
        closed_loops.run(),
        delassus.run(),
        constrained_derivatives.run(),
        "## Contact\n",
        contact.run(),
        "## Control\n",
        control.run(),
        reactive.run(),
        sampling.run(),
        "## Motion in time\n",
        stepping.run(),
        stepping_compliant.run(),
        "## Simulation\n",
        simulation.run(),
        "## Large systems\n",
        large.run(),
        "## The compiler\n",
        compiler.run(),
        loops.run(),
    )
    text = "\n".join(parts)
    print(text)
    if "--save" in sys.argv[1:]:
        page = PAGE.read_text()
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{text}{END}{after}")
        constrained.plots(PAGE.parent / "images")


if __name__ == "__main__":
    main()
