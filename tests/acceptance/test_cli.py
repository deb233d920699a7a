"""Two command-line clients, one writing and one following, across a kill of the service."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.deployment import deployed, descendants

RECORDS = 300
TYPING_S = 0.01  # between two lines
CATCH_UP_S = 90.0
QUIET_S = 1.0
NO_WORKER = {"MILLSTREAM_ARCHIVE_URL": "off"}


class Terminal:
    """A `millstream` process, and the lines it has written."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    def type(self, first: int, end: int) -> None:
        """Write numbers one by one, as typed."""
        assert self.process.stdin is not None
        for number in range(first, end):
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            time.sleep(TYPING_S)

    def wait_for(self, lines: int) -> None:
        """Wait until it has written that many lines."""
        deadline = time.monotonic() + CATCH_UP_S
        while len(self.lines) < lines:
            assert time.monotonic() < deadline, f"{len(self.lines)} lines of {lines}"
            time.sleep(0.05)


@contextmanager
def terminal(url: str, *words: str) -> Iterator[Terminal]:
    process = subprocess.Popen(
        [sys.executable, "-m", "api.cli", *words, "--url", url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "XDG_CONFIG_HOME": "/nonexistent"},
    )
    try:
        yield Terminal(process)
    finally:
        process.kill()
        process.wait()
        for file in (process.stdin, process.stdout):
            if file is not None and not file.closed:
                file.close()


def kill_all(pid: int) -> None:
    """Kill the whole deployment."""
    for one in {pid, *descendants(pid)}:
        with suppress(ProcessLookupError):  # it may have ended with its parent
            os.kill(one, signal.SIGKILL)


def test_tail_follows_put_once_and_in_order_across_kill(
    tmp_path: Path,
) -> None:
    """Neither client is restarted: one keeps putting, the other shows each record once."""
    data = ("--data", str(tmp_path / "data"))
    with deployed(tmp_path / "log", *data, environment=NO_WORKER) as millstream:
        url, port = millstream.url, millstream.url.rpartition(":")[2]
        httpx.put(f"{url}/v1/streams/clicks", json={"shards": 2}).raise_for_status()
        with (
            terminal(url, "stream", "tail", "-f", "clicks", "-n", "10000", "-o", "ndjson") as tail,
            terminal(url, "stream", "put", "clicks") as put,
        ):
            put.type(0, 100)
            tail.wait_for(50)
            kill_all(millstream.process.pid)
            put.type(100, 200)
            with deployed(tmp_path / "log", *data, "--port", port, environment=NO_WORKER):
                put.type(200, RECORDS)
                put.process.stdin.close()  # type: ignore[union-attr]
                assert put.process.wait(CATCH_UP_S) == 0
                tail.wait_for(RECORDS)
                time.sleep(QUIET_S)  # a duplicate would arrive now

    followed: list[dict[str, Any]] = [json.loads(line) for line in tail.lines]
    assert sorted(int(record["data"]) for record in followed) == list(range(RECORDS))
    by_shard = defaultdict(list)
    for record in followed:
        by_shard[record["shard"]].append(record["offset"])
    assert all(offsets == sorted(offsets) for offsets in by_shard.values())
