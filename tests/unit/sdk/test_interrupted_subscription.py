"""A program that is interrupted while its subscription opens."""

import gc
import os
import signal
import socket
import threading

import pytest

from millstream_client import Millstream


class Interrupted(BaseException):
    """Raised by the program's own signal handler."""


@pytest.fixture
def interrupting():
    """Install a signal handler that raises Interrupted."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield lambda: os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def test_interrupted_subscription_leaves_no_thread_or_task(interrupting, caplog):
    threads = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Millstream(url) as client:
            timer = threading.Timer(0.3, interrupting)
            timer.start()
            with pytest.raises(Interrupted), client.queue("orders").subscribe():
                pass
            timer.join()

    gc.collect()  # a leftover task would log an error
    assert threading.active_count() == threads
    assert not caplog.records
