"""Memory and processors of the machine, a container or a service."""

import os

import pytest

from storage.embedded.control_groups import granted_bytes, granted_cores

WHOLE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
GIB = 1 << 30
V2, V1 = "memory.max", "memory/memory.limit_in_bytes"


def write_groups(root, groups, limits):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups + "\n")
    for name, limit in limits.items():
        file = root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(limit + "\n")


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
    write_groups(tmp_path, groups, limits)

    assert granted_bytes(tmp_path) == expected


def test_memory_limit_without_cgroups_is_that_of_the_machine(tmp_path):
    assert granted_bytes(tmp_path) == WHOLE


@pytest.fixture
def sixteen_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        pytest.param("0::/", {}, 16, id="no quota"),
        pytest.param("0::/", {"cpu.max": "max 100000"}, 16, id="explicitly unlimited"),
        pytest.param("0::/", {"cpu.max": "400000 100000"}, 4, id="container"),
        pytest.param("0::/", {"cpu.max": "150000 100000"}, 1, id="one and a half"),
        pytest.param("0::/", {"cpu.max": "50000 100000"}, 1, id="less than one"),
        pytest.param("0::/", {"cpu.max": "6400000 100000"}, 16, id="above the affinity"),
        pytest.param(
            "0::/tenant/mill",
            {"tenant/mill/cpu.max": "max 100000", "tenant/cpu.max": "300000 100000"},
            3,
            id="parent quota is lower",
        ),
        pytest.param(
            "5:cpu,cpuacct:/docker/1\n0::/",
            {"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"},
            2,
            id="cgroup v1 container",
        ),
        pytest.param(
            "5:cpu:/",
            {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
            16,
            id="cgroup v1 unlimited",
        ),
        pytest.param("0::/", {"cpu.max": "?"}, 16, id="malformed quota"),
    ],
)
@pytest.mark.usefixtures("sixteen_cores")
def test_cores_are_the_least_of_affinity_and_quotas(tmp_path, groups, limits, expected):
    write_groups(tmp_path, groups, limits)

    assert granted_cores(tmp_path) == expected


def test_cores_without_cgroups_are_those_of_the_affinity(tmp_path):
    assert granted_cores(tmp_path) == len(os.sched_getaffinity(0))
