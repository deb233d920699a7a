"""Start barrier: who waits at it, and when it ends."""

import os
import threading

import pytest

from api.config.startup_settings import START_BARRIER, wait_at_start_barrier


@pytest.fixture
def pipe(monkeypatch):
    inner, outer = os.pipe()
    monkeypatch.setenv(START_BARRIER, str(inner))
    yield outer
    os.close(inner)


def test_process_without_barrier_starts(monkeypatch):
    monkeypatch.delenv(START_BARRIER, raising=False)

    wait_at_start_barrier()


def test_process_waits_until_barrier_opens(pipe):
    waiting = threading.Thread(target=wait_at_start_barrier)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()

    os.write(pipe, b"1")
    os.close(pipe)
    waiting.join(5)

    assert not waiting.is_alive()
    wait_at_start_barrier()  # a restarted process passes too


def test_process_exits_when_barrier_is_given_up(pipe):
    os.close(pipe)

    with pytest.raises(SystemExit):
        wait_at_start_barrier()
