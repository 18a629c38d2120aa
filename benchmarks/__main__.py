"""`python -m benchmarks [--save] [section …]`: run the benchmarks, all or those of some sections, and print them.

`--save` also puts them into docs/performance.md. The tables of the sources need third-party robots in the folder
that the environment variable DELASSUS_ROBOTS names, and leave out those that are not there.
"""

import os
import platform
import sys
from datetime import date
from pathlib import Path
from typing import Final

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
    files,
    large,
    loops,
    parameters,
    reactive,
    sampling,
    simulation,
    single,
    sources,
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


SECTIONS: Final = {
    "Robot dynamics": (dynamics, derivatives, single, parameters),
    "Constrained dynamics": (constrained, closed_loops, delassus, constrained_derivatives),
    "Tables of the sources": (sources,),
    "Contact": (contact,),
    "Control": (control, reactive, sampling),
    "Motion in time": (stepping, stepping_compliant),
    "Simulation": (simulation,),
    "Third-party robots": (files,),
    "Large systems": (large,),
    "The compiler": (compiler, loops),
}


def main() -> None:
    """Run and print."""
    asked = [name for name in sys.argv[1:] if name != "--save"]
    chosen = [title for title in SECTIONS if not asked or any(name.lower() in title.lower() for name in asked)]
    if not chosen:
        sys.exit(f"There is no section {' or '.join(asked)}; there are {', '.join(SECTIONS)}.")
    target = Target.host()
    header = (
        f"Measured by `make bench` on {date.today()}: {cpu_name()} (LLVM's {target.cpu}, {target.lanes} lanes), "
        f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"llvmlite {llvmlite.__version__}.\n"
    )
    print(header)
    measured = {}
    for title in chosen:
        text = "\n".join(module.run() for module in SECTIONS[title])
        print(f"## {title}\n\n{text}", flush=True)
        if title != "Third-party robots" or "DELASSUS_ROBOTS" in os.environ:  # else there is nothing to save
            measured[title] = text
    if "--save" in sys.argv[1:]:
        PAGE.write_text(_saved(PAGE.read_text(), header, measured))
        if "Constrained dynamics" in measured:
            constrained.plots(PAGE.parent / "images")


def _saved(page: str, header: str, measured: dict[str, str]) -> str:
    """The page with new sections in place of the old ones of the same titles."""
    before, _, rest = page.partition(BEGIN)
    kept, _, after = rest.partition(END)
    old = {part.partition("\n")[0]: part.partition("\n")[2].strip("\n") for part in kept.split("\n## ")[1:]}
    now = old | {title: text.strip("\n") for title, text in measured.items()}
    sections = (f"## {title}\n\n{now[title]}\n" for title in SECTIONS if title in now)
    return f"{before}{BEGIN}\n{header}\n{chr(10).join(sections)}{END}{after}"


if __name__ == "__main__":
    main()
