"""Problems of an object, the worst first, each as a sentence with its remedy.

Everything here is pure: the rows are those of the REST API.
"""

from collections.abc import Callable, Iterable, Iterator

from api.cli.grammar.parsers import show_age
from api.cli.shell.output import Row, age_of, show_age_of

REASONS_MAX = 3
NEARLY_FULL = 0.9
LOSS_WARNING_S = 86_400


def queue_problems(
    queue: Row, stats: Row, measurement: Row | None, reasons: list[Row]
) -> list[str]:
    """Return the problems of a queue. `reasons`: counts of its dead letters by reason."""
    name = queue["name"]
    return [
        *_stuck(queue, stats, measurement),
        *_full(queue, stats),
        *_parked(name, stats["parked"]),
        *_dead_letters(name, stats["dead_lettered"], reasons),
        *_paused(queue, "It accepts messages and delivers none", f"queue resume {name}"),
    ]


def _stuck(queue: Row, stats: Row, measurement: Row | None) -> Iterator[str]:
    if not stats["ready"] or queue["paused"]:
        return
    if measurement is None or measurement["received_per_second"] != 0:
        return
    age = show_age_of(stats["oldest_ready_at"])
    consumers = "" if measurement["consumers"] else "; the queue has no consumers"
    yield f"{stats['ready']} messages are ready and none is received, the oldest since {age}{consumers}."


def _full(queue: Row, stats: Row) -> Iterator[str]:
    count_stored = stats["ready"] + stats["delayed"] + stats["in_flight"] + stats["parked"]
    for limit, count in (("messages_max", count_stored), ("bytes_max", stats["bytes_held"])):
        if queue[limit] and count >= NEARLY_FULL * queue[limit]:
            yield f"{count} of {limit} {queue[limit]}: then overflow is {queue['overflow']}."
    if stats["in_flight"] >= queue["in_flight_max"]:
        yield f"{stats['in_flight']} messages are in flight, which is in_flight_max: none is received until one is settled."


def _parked(name: str, count: int) -> Iterator[str]:
    if count:
        command = f"`millstream queue peek {name} --state parked`"
        yield f"{count} messages are parked until their group is resumed; {command} shows them."


def _dead_letters(name: str, count: int, reasons: list[Row]) -> Iterator[str]:
    if not count:
        return
    largest = sorted(reasons, key=lambda reason: -int(reason["count"]))[:REASONS_MAX]
    by_reason = ", ".join(
        f"{reason['count']} {reason['reason'] or 'no reason'}" for reason in largest
    )
    detail = f" ({by_reason})" if by_reason else ""
    yield f"{count} dead letters{detail}; `millstream queue redrive {name}` returns them."


def stream_problems(stream: Row, shards: list[Row], groups: Iterable[Row]) -> list[str]:
    """Return the problems of a stream, whose groups have measurements."""
    fenced = [str(shard["index"]) for shard in shards if shard["open"] and shard["fenced"]]
    problems = [problem for group in groups for problem in _late(group, stream)]
    if fenced:
        problems.append(
            f"Shards {', '.join(fenced)} are fenced: producers of earlier epochs are rejected."
        )
    return problems


def _late(group: Row, stream: Row) -> Iterator[str]:
    """Report a group that does not read, or whose unread records expire soon."""
    measurement, retention_s = group["measurement"], stream["retention_seconds"]
    if measurement is None or not measurement["lag_records"]:
        return
    unread_at = measurement["oldest_unread_at"]
    if unread_at and retention_s and age_of(unread_at) > NEARLY_FULL * retention_s:
        age = show_age_of(unread_at)
        yield f"Group {group['name']} is {age} behind; records expire after {show_age(retention_s)}."
    if not measurement["members"] and group["kind"] != "simple":
        yield f"Group {group['name']} has no members and {measurement['lag_records']} unread records."
    elif group["paused"]:
        yield f"Group {group['name']} is paused and has {measurement['lag_records']} unread records."


def group_problems(group: Row, lag: Row) -> list[str]:
    """Return the problems of a group."""
    name, records = group["name"], lag["records"]
    return [
        *_losses(lag),
        *_without_members(group, records),
        *_disconnected(group["members"]),
        *_paused(group, "Its members receive no records", f"group resume {name}"),
    ]


def _losses(lag: Row) -> Iterator[str]:
    expired = sum(shard["expired"] for shard in lag["shards"])
    if expired:
        yield f"{expired} records expired before the group read them."
    loss_s = lag["loss_in_seconds"]
    if loss_s is not None and lag["records"] and loss_s < LOSS_WARNING_S:
        yield f"The next unread record expires in {show_age(loss_s)}."


def _without_members(group: Row, records: int) -> Iterator[str]:
    if group["kind"] == "simple":
        return
    if not group["members"]:
        if records:
            yield f"No members, and {records} records are unread."
        return
    idle = [
        str(shard["shard"])
        for shard in group["shards"]
        if not (shard["member"] or shard["finished"])
    ]
    if idle:
        yield f"Shards {', '.join(idle)} have no member."


def _disconnected(members: list[Row]) -> Iterator[str]:
    for member in members:
        if member["disconnected"]:
            yield f"Member {member['member']} is disconnected and keeps its shards until its timeout."


def webhook_problems(webhook: Row) -> list[str]:
    """Return the problems of a webhook."""
    name, health = webhook["name"], webhook["health"]
    problems = (
        [_WEBHOOK_STATES[health["state"]](name, health)]
        if health["state"] in _WEBHOOK_STATES
        else []
    )
    problems += [
        f"Shard {blocked['shard']} waits for a record that is not accepted: {blocked['failure']}"
        for blocked in health["blocked"]
    ]
    return problems


_WEBHOOK_STATES: dict[str, Callable[[str, Row], str]] = {
    "disabled": lambda name, health: (
        f"Disabled since {show_age_of(health['disabled_at'])} ({health['disabled_reason']}): "
        f"{_failure(health)} `millstream webhook resume {name}` enables it."
    ),
    "failing": lambda _, health: (
        f"Failing since {show_age_of(health['failing_since'])}: {_failure(health)}"
    ),
    "paused": lambda name, _: f"Paused; `millstream webhook resume {name}` resumes it.",
}


def _failure(health: Row) -> str:
    return f"{health['last_failure'] or 'no response'}.".replace("..", ".")


def _paused(definition: Row, consequence: str, command: str) -> Iterator[str]:
    if definition["paused"]:
        yield f"Paused. {consequence}; `millstream {command}` resumes it."


def view_problems(view: Row) -> list[str]:
    """Return the problems of a view."""
    return [
        *view_failures(view),
        *_unread(view["progress"]),
        *_paused(view, "Its rows are as of the last batch", f"view resume {view['name']}"),
    ]


def view_failures(view: Row) -> list[str]:
    """Return the problems of a view's batches and of its sinks."""
    return [*_failing_view(view), *_failing_sinks(view["sinks"])]


def _failing_view(view: Row) -> Iterator[str]:
    building = view["building"]
    if view["stopped"]:
        yield f"Stopped: {view['failure']} `millstream view resume {view['name']}` tries again."
    elif view["failure"]:
        yield f"The last batch failed: {view['failure']}"
    if building and building["failure"]:
        yield f"Revision {building['revision']}, which is being built, fails: {building['failure']}"


def _failing_sinks(sinks: list[Row]) -> Iterator[str]:
    for sink in sinks:
        if sink["failure"]:
            yield f"{sink['sink']} does not accept changes, {sink['pending']} are pending: {sink['failure']}"


def _unread(progress: Row) -> Iterator[str]:
    if progress["bad"]:
        yield f"{progress['bad']} of {progress['records']} records are not JSON of the declared columns."
    if progress["gaps"]:
        yield f"{progress['gaps']} records were deleted by retention before they were read."
