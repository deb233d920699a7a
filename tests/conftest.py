"""Real servers, started once per run, and an empty database per test.

Every server ends with the run, also when the run is killed: see `child_setup` in
`storage.embedded.processes`.
"""

import gc
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import redis
from httpx import _config as httpx_config
from httpx import create_ssl_context
from httpx._transports import default as httpx_transports
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from api.server import gc_tuning
from spark_worker.runtime import class_archive
from storage.embedded.postgres import running_postgres
from storage.embedded.servers import running
from storage.embedded.valkey import running_valkey
from tests.clusters import Masters, running_masters
from tests.databases import TEMPLATE, ReusedDatabase, database, execute, fresh_database
from tests.folders import quick_folder
from tests.redis_server import MISSING, NamedServer, find_redis

# Examples run against real servers, so their duration is no indication of a fault.
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci",
    max_examples=50,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "night", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", max_examples=5, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


# JVMs of tests are too short-lived for the second compiler and for bytecode verification to pay
# off. Spark's own launcher reads this.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    + " ".join(class_archive.load_options()),
)


# The certificate authorities take 30 ms to read, and tests open thousands of clients.
httpx_transports.create_ssl_context = cache(create_ssl_context)  # type: ignore[attr-defined]

# A call that waits longer than httpx's 5 s is one on a busy machine, and no fault.
for _operation in ("connect", "read", "write", "pool"):
    setattr(httpx_config.DEFAULT_TIMEOUT_CONFIG, _operation, 30.0)


def _without_threads_in_children() -> None:
    """Prevent OpenTelemetry from starting its export thread in forked children.

    A process with two threads cannot enter a user namespace: the embedded Postgres could not start
    in a process that had collected spans before.
    """
    register = os.register_at_fork

    def register_but_for_spans(**hooks: Any) -> None:
        if not any(hook.__module__.startswith("opentelemetry") for hook in hooks.values()):
            register(**hooks)

    os.register_at_fork = register_but_for_spans


_without_threads_in_children()


# Nothing is garbage while tests are collected, and they stay to the end: a full collection would visit hundreds of
# thousands of objects again and again.
gc.disable()


def pytest_collection_finish() -> None:
    gc_tuning.freeze_startup_heap()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=["plain", "cluster", "masters", "redis", "both"],
        default="plain",
        help="Which Valkey stands behind `redis_url`: one server, one node of a cluster, three masters with a replica "
        "each, or each of the first two in turn; redis: one redis-server from PATH.",
    )


class _ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Keep the tests of a file together, and all that need Spark or a browser.

    There is one Spark session at a time, and the browser is started once. (xdist's own groups have
    no effect in this pytest: they rename tests, which it no longer allows.)
    """

    def _split_scope(self, nodeid: str) -> str:
        for shared in ("spark", "browser"):
            if f"/{shared}/" in nodeid:
                return shared
        return nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    config.option.loadscopereorder = (
        False  # xdist would start with the files of most tests, which are fast
    )
    return _ByFile(config, log)


LONGEST = ("spark", "browser", "acceptance", "simulator", "chaos", "stateful")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the slowest tests, so that no process runs them alone at the end."""
    items.sort(key=lambda item: _place_of(item.nodeid))


def _place_of(nodeid: str) -> int:
    folder = nodeid.removeprefix("tests/").partition("/")[0]
    return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise `redis_url` with the stores of --store, unless a test names its own."""
    named = any(
        "redis_url" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")
    )
    if "redis_url" in metafunc.fixturenames and not named:
        store = metafunc.config.getoption("--store")
        if store == "both" and any(metafunc.definition.iter_markers("one_store")):
            store = "plain"
        stores: list[Any] = ["plain", "cluster"] if store == "both" else [store]
        if store == "masters" and any(metafunc.definition.iter_markers("one_server")):
            skip = pytest.mark.skip(reason="needs a store of one server")
            stores = [pytest.param(store, marks=skip)]
        metafunc.parametrize("redis_url", stores, indirect=True)


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """One Valkey for the run, with fsync always. Tests share its keys."""
    with (
        quick_folder("valkey") as data,
        running_valkey(data) as url,
    ):
        yield url


@pytest.fixture(scope="session")
def redis_server_url() -> Iterator[str]:
    """One Redis from PATH, with fsync always."""
    program = find_redis()
    if program is None:
        pytest.skip(MISSING)
    with (
        quick_folder("redis") as data,
        running(NamedServer(data, program)) as url,
    ):
        yield url


@pytest.fixture(scope="session")
def valkey_cluster_url() -> Iterator[str]:
    """One Valkey with `cluster-enabled yes`, which owns every slot."""
    with (
        quick_folder("cluster") as data,
        running_valkey(data, cluster=True) as url,
    ):
        yield url


@pytest.fixture(scope="session")
def valkey_masters() -> Iterator[Masters]:
    """Three masters that share the slots, with a replica each."""
    with (
        quick_folder("masters") as data,
        running_masters(data) as masters,
    ):
        yield masters


_URLS = {
    "plain": "valkey_url",
    "cluster": "valkey_cluster_url",
    "redis": "redis_server_url",
}


@pytest.fixture
def redis_url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty store, as selected by --store or an indirect parameter."""
    store = getattr(request, "param", "plain")
    if store == "masters":
        masters: Masters = request.getfixturevalue("valkey_masters")
        monkeypatch.setattr(redis.Redis, "from_url", masters.client_for(redis.Redis.from_url))
        masters.empty()
        return masters.url
    url = str(request.getfixturevalue(_URLS[store]))
    with redis.Redis.from_url(url) as client:
        client.flushall()
    return url


@pytest.fixture(scope="session")
def postgres_server_url() -> Iterator[str]:
    """One Postgres for the run; the URL names its empty database `millstream`."""
    with (
        quick_folder("postgres") as data,
        running_postgres(data) as url,
    ):
        yield url


@pytest.fixture(scope="session")
def migrated_template(postgres_server_url: str) -> str:
    """The name of a migrated database, to be copied."""
    from storage.postgres.migrate import migrate

    execute(postgres_server_url, f'CREATE DATABASE "{TEMPLATE}"')
    migrate(database(postgres_server_url, TEMPLATE))
    return TEMPLATE


@pytest.fixture(scope="session")
def reused_database(postgres_server_url: str, migrated_template: str) -> Iterator[ReusedDatabase]:
    """One database for all tests that need one."""
    database = ReusedDatabase(postgres_server_url)
    yield database
    database.close()


@pytest.fixture
def database_url(reused_database: ReusedDatabase) -> Iterator[str]:
    """A migrated database, cleaned after the test."""
    yield reused_database.url
    reused_database.clean()


@pytest.fixture
def empty_database_url(postgres_server_url: str) -> Iterator[str]:
    """A new, empty database."""
    with fresh_database(postgres_server_url, "template1") as url:
        yield url


@pytest.fixture(scope="session")
def s3_address() -> Iterator[str]:
    """host:port of an object store, started once per run."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"{host}:{port}"
    server.stop()


@pytest.fixture
def s3_url(s3_address: str, tmp_path: Path) -> str:
    """An archive URL in an object store, with a prefix of the test's own."""
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=f"http://{s3_address}",
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="mill")
    client.close()
    return f"s3://key:secret@mill/a/{tmp_path.name}?endpoint_override={s3_address}&scheme=http&region=us-east-1"
