"""Garbage-collector tuning: high thresholds, and frozen long-lived objects."""

import gc
from collections.abc import Iterator

import pytest

from api.cli import main as command_line
from api.server import gc_tuning


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_settle_freezes_objects_in_use() -> None:
    gc.unfreeze()
    gc_tuning.freeze_startup_heap()
    assert gc.get_freeze_count() > len(gc.get_objects())


def test_command_raises_threshold_and_freezes_at_exit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gc.unfreeze()
    monkeypatch.setattr("sys.argv", ["millstream", "no-such-command"])
    with pytest.raises(SystemExit):
        command_line.main()
    assert "no-such-command" in capsys.readouterr().err
    assert gc.get_threshold()[0] > 10_000
    assert gc.get_freeze_count() > len(gc.get_objects())
