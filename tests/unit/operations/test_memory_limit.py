"""The memory limit of the machine, a container or a service."""

import os

import pytest

from storage.embedded.memory import granted_bytes

WHOLE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
GIB = 1 << 30
V2, V1 = "memory.max", "memory/memory.limit_in_bytes"


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        pytest.param("0::/", {}, WHOLE, id="no limit"),
        pytest.param("0::/", {V2: "max"}, WHOLE, id="explicitly unlimited"),
        pytest.param("0::/", {V2: str(GIB)}, GIB, id="container"),
        pytest.param("0::/", {V2: str(WHOLE * 2)}, WHOLE, id="above physical memory"),
        pytest.param(
            "0::/system.slice/mill.service",
            {f"system.slice/mill.service/{V2}": str(2 * GIB), f"system.slice/{V2}": "max"},
            2 * GIB,
            id="systemd service",
        ),
        pytest.param(
            "0::/tenant/mill",
            {f"tenant/mill/{V2}": str(2 * GIB), f"tenant/{V2}": str(GIB)},
            GIB,
            id="parent limit is lower",
        ),
        pytest.param(
            "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/",
            {V1: str(GIB)},
            GIB,
            id="cgroup v1 container",
        ),
        pytest.param("4:memory:/", {V1: str(0x7FFFFFFFFFFFF000)}, WHOLE, id="cgroup v1 unlimited"),
        pytest.param("0::/", {V2: "?"}, WHOLE, id="malformed limit"),
    ],
)
def test_memory_limit_is_the_least_of_all_limits(tmp_path, groups, limits, expected):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups + "\n")
    for name, limit in limits.items():
        file = tmp_path / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(limit + "\n")

    assert granted_bytes(tmp_path) == expected


def test_memory_limit_without_cgroups_is_that_of_the_machine(tmp_path):
    assert granted_bytes(tmp_path) == WHOLE
