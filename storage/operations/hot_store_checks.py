"""Checks of every server of the hot store, for `millstream doctor`.

Each check is one finding for the whole store, however many servers it has: the worst of them, which it names.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from storage.domain.store_status import HotNode, HotReport
from storage.operations.diagnostics import Diagnostic
from storage.settings import StorageSettings

STORE_CLUSTER = "store cluster"
_SKEW_MS_MAX = 1_000
_PRESSURE = 0.8
_VERSION_MIN = (6, 2)
_NAMED_MAX = 3  # servers that a finding names

Examine = Callable[[HotReport], Diagnostic]


def hot_store_findings(
    nodes: Sequence[HotNode], settings: StorageSettings, now_ms: int
) -> list[Diagnostic]:
    """Return the findings about all servers.

    `now_ms` is the time at which they reported.
    """
    findings = [_nodes_finding(nodes)] if len(nodes) > 1 else []
    answering = [(node.address, node.report) for node in nodes if node.report is not None]
    if not answering:
        return findings

    def fsync(report: HotReport) -> Diagnostic:
        return _fsync_finding(report, settings)

    def clock(report: HotReport) -> Diagnostic:
        return clock_finding("clock", "the store's", report.time_ms, now_ms)

    examined = (_version_finding, _file_finding, _write_finding, fsync, _policy_finding)
    fullest = max(answering, key=lambda pair: _fullness(pair[1]))
    furthest = max(answering, key=lambda pair: abs(pair[1].time_ms - now_ms))
    return [
        *findings,
        *(_common([(name, examine(report)) for name, report in answering]) for examine in examined),
        _located(_memory_finding, *fullest),
        _located(clock, *furthest),
    ]


def _nodes_finding(nodes: Sequence[HotNode]) -> Diagnostic:
    """Check that every server answers, and that each primary has a replica in sync."""
    silent = [node.address for node in nodes if node.report is None]
    linked = {node.primary for node in nodes if node.report and node.report.is_linked}
    primaries = [node.address for node in nodes if not node.primary]
    alone = [address for address in primaries if address not in linked]
    problems = [
        *([f"no answer from {_names(silent)}"] if silent else []),
        *([f"no replica in sync for {_names(alone)}"] if alone else []),
    ]
    count = f"primaries: {len(primaries)}, replicas: {len(nodes) - len(primaries)}"
    return Diagnostic(
        STORE_CLUSTER,
        False if silent else (None if alone else True),
        "; ".join([count, *problems]),
        "start the servers that do not answer, and give each primary a replica: a slot whose only server is lost is"
        " not served",
    )


def _common(findings: Sequence[tuple[str, Diagnostic]]) -> Diagnostic:
    """Return the worst finding, with the servers that differ from the majority."""
    counts = Counter(finding.detail for _, finding in findings)
    _, worst = min(findings, key=lambda pair: _badness(pair[1].ok))
    if len(counts) == 1:
        return worst
    usual, _ = counts.most_common(1)[0]
    others = {
        detail: [address for address, finding in findings if finding.detail == detail]
        for detail in counts
        if detail != usual
    }
    details = [f"{detail} at {_names(addresses)}" for detail, addresses in others.items()]
    return Diagnostic(worst.check, worst.ok, "; ".join([usual, *details]), worst.hint)


def _badness(ok: bool | None) -> int:
    return {False: 0, None: 1, True: 2}[ok]


def _located(examine: Examine, address: str, report: HotReport) -> Diagnostic:
    """Return the finding about one server, with its address if it has one."""
    finding = examine(report)
    detail = f"{finding.detail} at {address}" if address else finding.detail
    return Diagnostic(finding.check, finding.ok, detail, finding.hint)


def _names(addresses: Sequence[str]) -> str:
    rest = len(addresses) - _NAMED_MAX
    names = ", ".join(addresses[:_NAMED_MAX])
    return f"{names} and {rest} more" if rest > 0 else names


def _version_finding(report: HotReport) -> Diagnostic:
    configuration = report.configuration
    version = tuple(int(part) for part in configuration.redis_version.split(".")[:2])
    return Diagnostic(
        "store version",
        version >= _VERSION_MIN,
        f"{configuration.flavor} {configuration.version}",
        "requires Redis 6.2 or Valkey 7.2, or later",
    )


def _file_finding(report: HotReport) -> Diagnostic:
    is_on = report.configuration.is_append_only
    return Diagnostic("append-only file", is_on, "on" if is_on else "off", "set appendonly yes")


def _write_finding(report: HotReport) -> Diagnostic:
    result = report.configuration.last_append
    return Diagnostic("last write to the file", result == "ok", result, "check the disk")


def _fsync_finding(report: HotReport, settings: StorageSettings) -> Diagnostic:
    fsync = report.configuration.fsync
    if fsync is None:
        return Diagnostic(
            "fsync", None, "not reported by the server", "verify appendfsync yourself"
        )
    return Diagnostic(
        "fsync",
        fsync == settings.fsync,
        fsync,
        f"set appendfsync {settings.fsync}, which durability={settings.durability} requires",
    )


def _policy_finding(report: HotReport) -> Diagnostic:
    policy = str(report.configuration.eviction_policy)
    return Diagnostic(
        "memory policy",
        policy == "noeviction",
        policy,
        "set maxmemory-policy noeviction: any other policy loses messages",
    )


def _fullness(report: HotReport) -> tuple[bool, float]:
    """Return a measure of how full a server is; first, that it has no limit."""
    most = report.memory_max_bytes
    return not most, report.memory_used_bytes / (most or 1)


def _memory_finding(report: HotReport) -> Diagnostic:
    return memory_finding(report.memory_used_bytes, report.memory_max_bytes)


def memory_finding(used_bytes: int, max_bytes: int) -> Diagnostic:
    """Check a server's memory use, and that it has a limit to compare it with."""
    if not max_bytes:
        return Diagnostic(
            "memory",
            None,
            f"{used_bytes >> 20} MiB, no limit: the memory guard is disabled",
            "set maxmemory: writes are then rejected at 85 % of it, before the store runs"
            " out of memory",
        )
    return Diagnostic(
        "memory",
        None if used_bytes / max_bytes > _PRESSURE else True,
        f"{used_bytes >> 20} of {max_bytes >> 20} MiB",
        "increase maxmemory: writes are rejected at 85 %",
    )


def clock_finding(check: str, whose: str, time_ms: int, now_ms: int) -> Diagnostic:
    """Compare a clock with this machine's."""
    skew_ms = abs(time_ms - now_ms)
    return Diagnostic(
        check, skew_ms <= _SKEW_MS_MAX, f"{skew_ms} ms from {whose}", "run an NTP client on both"
    )
