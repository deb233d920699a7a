"""A copying program killed around a commit, then rerun with another shuffle."""

import signal
import subprocess
import sys

import httpx
import pytest

from tests.spark.source.streams import Stream

pytestmark = pytest.mark.chaos

RECORDS = 200


def run(url: str, checkpoint: str, tasks: int, where: str) -> int:
    words = [url, "source", "target", checkpoint, str(tasks), where]
    command = [sys.executable, "-m", "tests.chaos.copying_program", *words]
    return subprocess.run(command, timeout=300, check=False).returncode


@pytest.mark.parametrize("where", ["staged", "committed"])
def test_driver_killed_around_commit_copies_exactly_once(chaos_service, tmp_path, where):
    url, _ = chaos_service
    with httpx.Client(base_url=url, timeout=30) as http:
        for name in ("source", "target"):
            http.delete(f"/v1/streams/{name}")
        source = Stream.made(http, url, "source", shards=2)
        target = Stream.made(http, url, "target", shards=2)
        source.put(range(RECORDS))

        killed = run(url, str(tmp_path / "checkpoint"), 3, where)
        before = target.numbers()
        ended = run(url, str(tmp_path / "checkpoint"), 5, "nowhere")

        assert (killed, ended) == (-signal.SIGKILL, 0)
        assert len(before) == (80 if where == "staged" else 120)
        assert sorted(target.numbers()) == [*range(RECORDS)]
