"""The embedded servers: durability, access, start-up and shutdown."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import unquote

import psycopg
import pytest
import redis

from storage.embedded import binaries
from storage.embedded.binaries import find_allocator, find_valkey
from storage.embedded.errors import EmbeddedServerError, MissingBinary, ServerNotReady
from storage.embedded.postgres import PostgresServer, running_postgres
from storage.embedded.processes import stop
from storage.embedded.servers import running, start
from storage.embedded.valkey import ValkeyServer, running_valkey
from tests.clusters import ClusterClient

START_AND_SLEEP = """
import sys, time
from pathlib import Path
from storage.embedded.postgres import PostgresServer
from storage.embedded.servers import start
from storage.embedded.valkey import ValkeyServer
for server in (ValkeyServer(Path(sys.argv[1])), PostgresServer(Path(sys.argv[1]), fsync=False)):
    server.prepare()
    process = start(server)
    server.wait_ready()
    print(process.pid, flush=True)
time.sleep(60)
"""


def test_valkey_writes_to_disk_before_answering_and_never_evicts(valkey_url):
    with redis.Redis.from_url(valkey_url, decode_responses=True) as client:
        append = client.config_get("append*")
        policy = client.config_get("maxmemory-policy")

    assert append["appendonly"] == "yes"
    assert append["appendfsync"] == "always"
    assert policy == {"maxmemory-policy": "noeviction"}


def test_cluster_node_owns_every_slot(valkey_cluster_url):
    with ClusterClient.from_url(valkey_cluster_url) as client:
        client.set("{a}", "1")
        client.set("{b}", "2")

        assert client.get("{b}") == b"2"


def test_valkey_data_survives_restart(tmp_path):
    with running_valkey(tmp_path) as url, redis.Redis.from_url(url) as client:
        client.set("kept", "yes")

    with running_valkey(tmp_path) as url, redis.Redis.from_url(url) as client:
        assert client.get("kept") == b"yes"


def test_postgres_is_utf8_persistent_and_not_on_network(tmp_path):
    with running_postgres(tmp_path) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (word text)")
        connection.execute("INSERT INTO kept VALUES (lower('ÄPFEL'))")

    with running_postgres(tmp_path) as url, psycopg.connect(url) as connection:
        rows = connection.execute("SELECT word FROM kept").fetchall()
        listens = connection.execute("SHOW listen_addresses").fetchone()

    assert rows == [("äpfel",)]
    assert listens == ("",)


def test_socket_directories_are_private(tmp_path):
    with running_valkey(tmp_path), running_postgres(tmp_path):
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "run").iterdir()
        }

    assert modes == {"valkey": 0o700, "postgres": 0o700}


@pytest.mark.parametrize("name", ["too deep for a socket".ljust(120, "."), "a, b"])
def test_data_directory_with_long_path_works(name, tmp_path, monkeypatch):
    """Postgres took a path with a comma for two directories, and did not start."""
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setattr("storage.embedded.sockets._short_root", lambda: Path(short))
        with (
            running_valkey(tmp_path / name) as redis_url,
            running_postgres(tmp_path / name) as database_url,
            redis.Redis.from_url(redis_url) as client,
            psycopg.connect(database_url),
        ):
            assert client.ping()

    for url in (redis_url, unquote(database_url)):
        assert f"{short}/millstream-" in url


@pytest.mark.parametrize("name", ["[old]", r"what? \[x] {y} *;&"])
def test_data_directory_with_glob_characters_works(name, tmp_path):
    """Valkey found no configuration for the first, and served the whole network without one."""
    with running_valkey(tmp_path / name) as url, redis.Redis.from_url(url) as client:
        assert client.config_get("port") == {"port": "0"}


def test_socket_directory_of_another_user_is_rejected(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "valkey").symlink_to("/tmp")

    with pytest.raises(EmbeddedServerError, match="belongs to another user"):
        ValkeyServer(tmp_path).prepare()


def test_interrupted_initdb_is_repeated(tmp_path):
    (tmp_path / "postgres.new").mkdir()
    (tmp_path / "postgres.new" / "PG_VERSION").write_text("18")

    with running_postgres(tmp_path) as url, psycopg.connect(url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_pid_file_naming_another_program_is_ignored(tmp_path):
    server = PostgresServer(tmp_path, fsync=False)
    server.prepare()
    (server.directory / "postmaster.pid").write_text(f"{os.getpid()}\n{server.directory}\n")

    with running(server) as url, psycopg.connect(url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("waited_for", [True, False])
def test_postgres_starts_while_sessions_of_killed_one_end(tmp_path, waited_for):
    """A killed server leaves lock files, shared memory in use and, when nobody reaps it, its process id."""
    server = PostgresServer(tmp_path, fsync=False)
    server.prepare()
    before = start(server)
    server.wait_ready()
    with psycopg.connect(server.url) as connection:
        session = connection.info.backend_pid
        os.kill(session, signal.SIGSTOP)
        before.kill()
        if waited_for:
            before.wait()
        late = threading.Timer(0.5, os.kill, (session, signal.SIGCONT))
        late.start()

        with running(server) as url, psycopg.connect(url) as another:
            assert another.execute("SELECT 1").fetchone() == (1,)

        late.join()
        before.wait()


def test_failing_server_reports_reason_in_one_line(tmp_path):
    server = PostgresServer(tmp_path, fsync=False)
    server.prepare()
    (server.directory / "PG_VERSION").write_text("17\n")
    process = start(server)

    with pytest.raises(ServerNotReady, match=r"exited during startup: .*(version|compatible)"):
        server.wait_ready(alive=lambda: process.poll() is None)

    stop(process, server.stop_signal)


def test_missing_valkey_is_reported_as_missing_binary(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MissingBinary, match="valkey-server and redis-server are not on PATH"):
        find_valkey("path")


def test_bundled_valkey_uses_system_allocator(monkeypatch, tmp_path):
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(binaries, "_JEMALLOC", "libutil.so.1")  # every machine's C library has it
    server = ValkeyServer(tmp_path)

    with running(server):
        with redis.Redis(unix_socket_path=str(server.socket)) as client:
            pid = client.info("server")["process_id"]
        loaded = Path(f"/proc/{pid}/maps").read_text()

    assert str(find_allocator()) in server.command()[1]
    assert "libutil" in loaded


def test_bundled_valkey_starts_without_system_allocator(monkeypatch, tmp_path):
    monkeypatch.setattr(binaries, "_LIBRARIES", (str(tmp_path),))

    assert ValkeyServer(tmp_path).command()[0] == str(find_valkey("bundled"))


def test_explicit_ld_preload_is_respected(monkeypatch, tmp_path):
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(binaries, "_LIBRARIES", (str(tmp_path),))
    (tmp_path / "libjemalloc.so.2").touch()
    allocator = find_allocator()

    monkeypatch.setenv("LD_PRELOAD", "/opt/other.so")

    assert allocator == tmp_path / "libjemalloc.so.2"
    assert find_allocator() is None


def test_servers_end_when_their_parent_is_killed(tmp_path):
    parent = subprocess.Popen(
        [sys.executable, "-c", START_AND_SLEEP, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    children = [int(parent.stdout.readline()) for _ in range(2)]

    parent.send_signal(signal.SIGKILL)
    parent.communicate()

    assert _all_end(children, within_s=5)


def _all_end(pids: list[int], *, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
