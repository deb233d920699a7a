"""The command line in a shell: completion, pipes and signals."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from api.cli.shell.completion import queue_names
from tests.cli_commands import millstream
from tests.conditions import PATIENCE_S
from tests.contract.cli.shells import bash

pytestmark = pytest.mark.usefixtures("at_the_service")


def test_shell_completes_names_and_nothing_when_unreachable(orders, service_url):
    namespace = SimpleNamespace(params={"url": service_url})
    nobody = SimpleNamespace(params={"url": "http://127.0.0.1:1"})

    assert queue_names(namespace, orders[:-1]).count(orders) == 1
    assert queue_names(nobody, "") == []


def test_shell_completes_names_of_service_named_before_the_verb(orders, service_url, monkeypatch):
    """A name completes at the service of --url, wherever that stands, also after an alias."""
    monkeypatch.delenv("MILLSTREAM_URL")
    words = f"millstream --url {service_url} queue get {orders}"
    completion = {"COMP_WORDS": words, "COMP_CWORD": "5", "_MILLSTREAM_COMPLETE": "complete_bash"}

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.argv[0] = 'millstream'\nfrom api.cli.main import main; main()",
        ],
        env={**os.environ, **completion},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split() == [orders]


def test_closed_pipe_ends_receive_quietly_without_loss(orders, client):
    """`head` prints one line; the message whose line could not be written is released."""
    millstream("queue", "send", orders, "-", stdin=b"1\n2\n3\n")

    ran = bash(
        f"set +o pipefail; millstream queue receive --follow {orders} | head -1; echo ${{PIPESTATUS[*]}}"
    )

    assert (ran.stdout, ran.stderr) == ("1\n141 0\n", "")
    cached_stats = client.get(f"/v1/queues/{orders}/stats").json()
    assert (cached_stats["ready"], cached_stats["in_flight"], cached_stats["acknowledged"]) == (
        2,
        0,
        1,
    )


def test_closed_pipe_is_noticed_while_idle(orders):
    """One message is written; no second write ever shows that the reader has left."""
    millstream("queue", "send", orders, "1")

    ran = bash(
        "set +o pipefail; "
        f"millstream queue receive --follow {orders} | head -1; echo ${{PIPESTATUS[*]}}"
    )

    assert (ran.stdout, ran.stderr) == ("1\n141 0\n", "")


def _with_interrupts() -> None:
    """Let SIGINT end the process, also where the tests run in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_tail_quietly(clicks, number, code):
    millstream("stream", "put", clicks, "a")
    command = [sys.executable, "-m", "api.cli", "stream", "tail", "-f", clicks]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_with_interrupts,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"a\n"
        time.sleep(0.3)  # so that it follows
        process.send_signal(number)

        assert process.wait(PATIENCE_S) == code
        assert process.stderr.read() == b""
