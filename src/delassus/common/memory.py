"""Available memory: allocations that would exceed it raise an error first."""

from __future__ import annotations

import os
from pathlib import Path


def free_memory() -> float:
    """Free memory [bytes] of the system, within the limits of the process and its group; infinite if unknown."""
    return max(0.0, min(_of_system(), _within_process(), *map(_within_group, _groups())))


def _of_system() -> float:
    """Free memory [bytes] of the system."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024.0
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return float("inf")


def _within_process() -> float:
    """Memory [bytes] up to the limit of address space (`ulimit -v`)."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return float("inf")
        return limit - float(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError, AttributeError):
        return float("inf")


def _groups() -> list[Path]:
    """The control groups of the process, such as that of a container, and their parents."""
    try:
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return []
    own = [
        Path("/sys/fs/cgroup", "memory" if names else "", path.lstrip("/"))
        for _, names, path in lines
        if names in ("", "memory")
    ]
    return [group for start in own for group in (start, *start.parents) if group.is_relative_to("/sys/fs/cgroup")]


def _within_group(group: Path) -> float:
    """Memory [bytes] up to the limit of a control group; cached files do not count."""
    for limit, used, forgotten in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            most, now = float((group / limit).read_text()), float((group / used).read_text())
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            return most - now + float(stat.get(forgotten, 0.0))
        except (OSError, ValueError):  # the file is absent or contains "max"
            continue
    return float("inf")
