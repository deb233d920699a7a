"""A whole deployment under faults: its load balancer, its versions, and the judgement by the failure matrix."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest

from storage.postgres.schema_revision import head
from tests.chaos.deployment import balancer, releases
from tests.chaos.deployment.balancer import Balancer, running_balancer
from tests.chaos.deployment.matrix import (
    Period,
    stays_up,
    unavailable_by_matrix,
    works_again,
)
from tests.chaos.deployment.releases import (
    PACKAGES,
    SCRIPTS,
    SDK,
    THIS,
    NoRelease,
    Release,
    last_release,
    next_release,
)
from tests.chaos.history import Kind, Operation, Outcome
from tests.conditions import PATIENCE_S, eventually
from tests.documentation import ROOT


class Backend:
    """An API machine that answers with its name, and its readiness with a status, or never."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = 200
        self.address = ""
        self.checks = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            is_check = b" /readyz " in head
            self.checks += is_check
            status = self.status if is_check else 200
            if status:
                body = self.name.encode()
                writer.write(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n" % (status, len(body)))
                writer.write(body)
        writer.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


@asynccontextmanager
async def running_backend(name: str) -> AsyncGenerator[Backend]:
    backend = Backend(name)
    server = await asyncio.start_server(backend.serve, "127.0.0.1", 0)
    backend.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield backend
    server.close()


@pytest.fixture
async def backends(monkeypatch) -> AsyncGenerator[list[Backend]]:
    monkeypatch.setattr(balancer, "CHECK_S", 0.01)
    monkeypatch.setattr(balancer, "ANSWER_S", 0.1)
    async with running_backend("one") as one, running_backend("two") as two:
        yield [one, two]


async def answers(url: str, count: int) -> set[str]:
    """Return the machines that answer, each call having a connection of its own."""
    named = set()
    for _ in range(count):
        async with httpx.AsyncClient(trust_env=False) as http:
            named.add((await http.get(url)).text)
    return named


async def test_connections_go_to_ready_machines_in_turn(backends):
    async with running_balancer([one.address for one in backends], 1) as proxy:
        url = f"http://{proxy.address}/"
        both = await answers(url, 4)
        backends[0].status = 503
        checks = backends[0].checks
        await eventually(lambda: _true(backends[0].checks > checks + 1), True)
        ready = await answers(url, 4)
        backends[1].status = 503
        checks = backends[1].checks
        await eventually(lambda: _true(backends[1].checks > checks + 1), True)
        unready = await answers(url, 4)

    assert both == {"one", "two"}
    assert ready == {"two"}
    assert unready == {"one", "two"}


async def _true(value: bool) -> bool:
    return value


async def test_silent_machine_loses_its_connections(backends):
    silent = backends[0]
    guarding = Balancer([silent.address])
    reader, writer = await guarding.connect()
    silent.status = 0

    watching = asyncio.create_task(guarding.watch())
    ended = await asyncio.wait_for(reader.read(), PATIENCE_S)
    watching.cancel()
    writer.close()

    assert ended == b""


def refused_at(at: float, status: int = 503) -> Operation:
    return Operation(
        client="c",
        kind=Kind.SEND,
        log="q",
        invoked=at - 1,
        ended=at,
        outcome=Outcome.FAIL,
        status=status,
    )


@pytest.mark.parametrize(
    ("fault", "role"),
    [
        ("kill sweeper 1", "sweeper"),
        ("cut worker 2", "worker"),
        ("replace deliverer 1", "deliverer"),
        ("pause store 2", "replica store"),
        ("kill api 1", "api"),
        ("upgrade", "this version"),
    ],
)
def test_unavailability_is_a_violation_where_calls_go_on(fault, role):
    period = Period(fault, role, began=10, ended=20, recovered_s=1)

    inside, outside = (unavailable_by_matrix([refused_at(at)], [period]) for at in (15, 25))

    assert len(inside.violations) == 1
    assert outside.violations == ()


@pytest.mark.parametrize(
    ("fault", "role"),
    [
        ("kill store 1", "primary store"),
        ("cut postgres 2", "standby postgres"),
        ("cut api 1", "api"),
    ],
)
def test_unavailability_is_allowed_where_calls_depend_on_the_host(fault, role):
    period = Period(fault, role, began=10, ended=20, recovered_s=1)

    assert unavailable_by_matrix([refused_at(15)], [period]).violations == ()


def test_host_that_does_not_recover_is_a_violation():
    periods = [Period("kill api 1", "api", 0, 9, recovered_s) for recovered_s in (1.0, None)]

    assert works_again(periods).violations == ("kill api 1 (api)",)


def test_process_that_ends_by_itself_is_reported_unless_of_last_release():
    last = Release("release 1", ROOT)

    finding = stays_up([("worker 1", last), ("worker 2", THIS)], last)

    assert finding.violations == ("worker 2 of this version",)
    assert len(stays_up([("worker 1", THIS)], None).violations) == 1


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """A repository of this version, whose last commit adds the newest migration."""
    root = tmp_path_factory.mktemp("committed") / "repository"
    for package in (*PACKAGES, SDK):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, root / package, ignore=ignored)
    [newest] = (root / SCRIPTS).glob(f"r{head()}_*.py")
    migration = newest.read_bytes()
    newest.unlink()
    git(root, "init", "--quiet")
    commit(root, "the last release")
    newest.write_bytes(migration)
    commit(root, "the newest migration")
    return root


@pytest.fixture
def repository(committed, monkeypatch):
    """The repository, as that of this program."""
    monkeypatch.setattr(releases, "ROOT", committed)
    return committed


def git(root, *words):
    subprocess.run(["git", *words], cwd=root, check=True)


def commit(root, subject):
    git(root, "add", "--all")
    author = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    git(root, *author, "commit", "--quiet", "-m", subject)


def test_last_release_is_unpacked(tmp_path, repository):
    release = last_release(tmp_path)

    assert (release.root / "api" / "cli" / "__main__.py").exists()
    revisions = {path.name[:5] for path in (release.root / SCRIPTS).glob("r*.py")}
    assert f"r{head()}" not in revisions
    assert len(revisions) == int(head()) - 1


def test_shallow_clone_has_no_last_release(tmp_path, repository, monkeypatch):
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", "--no-checkout", repository.as_uri(), str(clone))
    monkeypatch.setattr(releases, "ROOT", clone)

    with pytest.raises(NoRelease, match="no commit before the newest migration"):
        last_release(tmp_path)


def test_next_release_has_one_more_migration(tmp_path):
    release = next_release(tmp_path)

    migrations = {path.name for path in (release.root / SCRIPTS).glob("r*.py")}
    own = {path.name for path in (THIS.root / SCRIPTS).glob("r*.py")}
    assert len(migrations - own) == 1
    assert own < migrations
    assert max(migrations) not in own
