"""Each loop over many owners' objects serves the others when one raises."""

from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from consumers.maintenance.tasks.idle_queues import delete_idle_queues
from consumers.maintenance.tasks.queues import ActiveQueueTracker
from consumers.maintenance.tasks.read_records import delete_read_records
from consumers.maintenance.tasks.reshards import finish_reshards
from consumers.maintenance.tasks.retention import trim_streams
from consumers.maintenance.tasks.route_endpoints import delete_unused_endpoints
from consumers.maintenance.tasks.stream_loads import scale_streams
from consumers.maintenance.tasks.tiers import trim_archived_streams
from storage.archive.garbage_collection import ArchiveGarbageCollector
from storage.bootstrap import Storage
from storage.domain.names import GroupName, QueueName, RouteName, SourceName, StreamName, TopicName
from storage.domain.queues.queue import QueueSpec
from storage.domain.quotas import Quotas
from storage.domain.streams.stream import StreamMode, StreamSpec
from tests.conditions import eventually

pytestmark = pytest.mark.one_store

NAMES = ("a", "bad", "c")
SPEC = StreamSpec(archive=True, drop_when_read=True, mode=StreamMode.ON_DEMAND)

Run = Callable[[Storage], Awaitable[object]]


class Loop:
    """A loop under test: `target` and `method` serve one object, `run` serves all."""

    def __init__(
        self,
        task: str,
        target: Callable[[Storage], Any],
        method: str,
        run: Run,
        *,
        objects: tuple[str, str, Iterable[Any]] | None = None,
        result: object = 0,
    ) -> None:
        self.task = task
        self.target = target
        self.method = method
        self.run = run
        self.objects = objects
        self.result = result


async def _collect(storage: Storage) -> None:
    rows = SimpleNamespace(
        to_delete=returning([(name, name) for name in NAMES]),
        delete_files=returning(None),
        delete_orphaned_shards=returning(0),
    )
    await collector_of(storage, rows, delete_file).collect()


async def _rebalance(storage: Storage) -> None:
    storage.groups._rows.exist = returning(True)  # type: ignore[method-assign, assignment]
    await storage.groups.rebalance_all()


async def _retire(storage: Storage) -> None:
    async def every_shard(stream_ids: list[str]) -> dict[str, set[int]]:
        return {stream_id: {0} for stream_id in stream_ids}

    rows = SimpleNamespace(shards_with_files=every_shard)
    await collector_of(storage, rows, delete_file).retire()


def collector_of(storage: Storage, rows: Any, delete: Any) -> ArchiveGarbageCollector:
    return ArchiveGarbageCollector(
        rows=rows,
        writes=SimpleNamespace(),  # type: ignore[arg-type]
        root=SimpleNamespace(delete=delete),
        hot=storage.archive_planner._hot,
        catalog=storage.catalog,
        clock=storage.audit_log._clock,
        isolation=storage.isolation,
    )


def returning(value: object) -> Callable[..., Awaitable[object]]:
    async def give(*_: object, **__: object) -> object:
        return value

    return give


SERVED: list[str] = []


def delete_file(path: str) -> None:
    SERVED.append(path)
    if path == "bad":
        raise PermissionError(path)


def jobs() -> list[Any]:
    return [SimpleNamespace(job_id=name, namespace="default", spec={}) for name in NAMES]


def sources() -> list[Any]:
    return [SimpleNamespace(source_id=name, name=SourceName(name)) for name in NAMES]


LOOPS = [
    Loop("queues", lambda s: s.queues, "sweep", ActiveQueueTracker()),
    Loop("streams", lambda s: s.streams, "trim", trim_streams.work),
    Loop("tiers", lambda s: s.streams, "trim", trim_archived_streams.work),
    Loop("loads", lambda s: s.streams, "scale", scale_streams.work),
    Loop("reshards", lambda s: s.streams.resharder, "finish", finish_reshards.work),
    Loop("read", lambda s: s.groups, "delete_read", delete_read_records.work),
    Loop(
        "groups",
        lambda s: s.groups._coordinator,
        "apply",
        _rebalance,
        objects=("groups._rows", "to_settle", [GroupName(name) for name in NAMES]),
    ),
    Loop(
        "archive",
        lambda s: s.archive_planner,
        "_measure_backlog",
        lambda s: s.archive_planner.plan(),
        result=None,
    ),
    Loop("archived", lambda _: ArchiveGarbageCollector, "_retire", _retire),
    Loop("archived", lambda _: None, "", _collect),
    Loop("weights", lambda s: s.usage, "measure", lambda s: s.usage.measure_all()),
    Loop(
        "deleted",
        lambda s: s.maintenance._logs,
        "delete_tombstone",
        lambda s: s.maintenance.tombstone_deleted(),
    ),
    Loop(
        "replays",
        lambda s: s.replays,
        "_retire",
        lambda s: s.replays.sweep(),
        objects=("replays", "_ended", jobs()),
    ),
    Loop(
        "writes",
        lambda s: s.staged_writes,
        "_continue",
        lambda s: s.staged_writes.finish(),
        objects=("staged_writes._rows", "open", [(StreamName(name), None) for name in NAMES]),
    ),
    Loop(
        "audit",
        lambda s: s.audit_log._rows,
        "give_up",
        lambda s: s.audit_log.close_abandoned(),
        objects=("audit_log._rows", "abandoned", NAMES),
    ),
    Loop(
        "sources",
        lambda s: s.source_transfer,
        "_complete_and_retire",
        lambda s: s.source_transfer.sweep(),
        objects=("source_transfer._sources", "all", sources()),
    ),
    Loop(
        "moves",
        lambda s: s.moves,
        "_take_turn",
        lambda s: s.moves.resume(),
        objects=("moves._rows", "open", [SimpleNamespace(move_id=name) for name in NAMES]),
        result=False,
    ),
    Loop(
        "idle_queues",
        lambda s: s.queue_expiry,
        "is_expired",
        delete_idle_queues.work,
        objects=("queue_expiry", "idle", [SimpleNamespace(name=QueueName(n)) for n in NAMES]),
        result=False,
    ),
    Loop(
        "route_endpoints",
        lambda s: s.route_endpoints,
        "delete_unused",
        delete_unused_endpoints.work,
        result=False,
    ),
    Loop(
        "series",
        lambda s: s.time_series._sampler._collector,
        "_queue",
        lambda s: s.time_series.sample(),
        result=None,
    ),
    Loop(
        "series",
        lambda s: s.time_series._sampler._collector,
        "_stream",
        lambda s: s.time_series.sample(),
        result=None,
    ),
]


@pytest.fixture
async def storage(engines: Storage, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """Queues, streams and namespaces of three owners, of which one is bad."""
    for name in NAMES:
        await engines.catalog.put_queue(QueueName(name), QueueSpec())
        await engines.catalog.put_stream(StreamName(name), SPEC)
        await engines.namespaces.put(name, Quotas(stored_bytes_max=1 << 30))
    SERVED.clear()
    return engines


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: f"{loop.task}-{loop.method or 'file'}")
async def test_loop_serves_others_when_one_object_raises(storage, monkeypatch, caplog, clock, loop):
    """A maintenance task ended at the first queue that raised, and left those behind it."""
    arrange(storage, monkeypatch, loop)

    for _ in range(2):
        await loop.run(storage)
    await eventually(lambda: served(), {"a", "bad", "c"})

    [failing] = storage.isolation.failing
    assert failing.task == loop.task
    assert "bad" in failing.object
    assert caplog.messages.count("object_failed") == 1
    assert SERVED.count("bad") == 1  # it backs off
    assert SERVED.count("c") >= 1


async def served() -> set[str]:
    return set(SERVED)


def arrange(storage: Storage, monkeypatch: pytest.MonkeyPatch, loop: Loop) -> None:
    if loop.task == "tiers":
        monkeypatch.setattr(storage.archive_admin, "on", True)
    if loop.task == "reshards":
        pretend_to_reshard(storage, monkeypatch)
    if loop.task == "deleted":
        logs = [("default", name) for name in NAMES]
        monkeypatch.setattr(storage.catalog, "deleted_logs", pages_of(logs))
        monkeypatch.setattr(storage.catalog, "delete_tombstoned", returning(None))
        monkeypatch.setattr(storage.maintenance._logs, "tombstone", returning(None))
    if loop.task == "route_endpoints":
        routes = [RouteName(TopicName(name), "crm") for name in NAMES]
        monkeypatch.setattr(storage.route_endpoints._rows, "unused", one_page_of(routes))
    if loop.task == "writes":
        monkeypatch.setattr(storage.staged_writes, "_root_or_none", object())
    if loop.objects is not None:
        path, method, objects = loop.objects
        owner: Any = storage
        for part in path.split("."):
            owner = getattr(owner, part)
        monkeypatch.setattr(owner, method, returning(list(objects)))
    if loop.method:
        monkeypatch.setattr(loop.target(storage), loop.method, serve(loop.result))


def serve(result: object) -> Callable[..., Awaitable[object]]:
    async def visit(*arguments: object, **_: object) -> object:
        text = " ".join(map(str, map(name_of, arguments)))
        name = next(name for name in NAMES if name in text.replace("default", "").split("/"))
        SERVED.append(name)
        if name == "bad":
            raise ValueError("this object only")
        return result

    return visit


def name_of(argument: object) -> object:
    """Return the name in an argument, as `default/name`."""
    for member in ("name", "stream", "job_id", "log_id"):
        if (found := getattr(argument, member, None)) is not None:
            return f"/{name_of(found)}/"
    return f"/{argument}/" if isinstance(argument, str | msgspec.Struct) else ""


def pretend_to_reshard(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    all_streams = storage.catalog.all_streams

    async def opening() -> Any:
        return {
            name: msgspec.structs.replace(stream, shards_target=2)
            for name, stream in (await all_streams()).items()
        }

    monkeypatch.setattr(storage.catalog, "all_streams", opening)


def one_page_of(routes: list[RouteName]) -> Callable[..., Awaitable[object]]:
    async def give(after: QueueName | None, _: int) -> object:
        return [] if after else routes

    return give


def pages_of(logs: list[tuple[str, str]]) -> Callable[..., Awaitable[object]]:
    async def give(_: int, after: str = "") -> object:
        return [] if after else logs

    return give
