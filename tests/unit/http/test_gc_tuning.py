"""Garbage is looked for seldom, and not at all in what stays."""

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


def test_what_is_in_use_is_not_looked_at_again() -> None:
    gc.unfreeze()
    gc_tuning.settle()
    assert gc.get_freeze_count() > len(gc.get_objects())


def test_a_command_looks_seldom_and_is_not_taken_apart_at_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gc.unfreeze()
    monkeypatch.setattr("sys.argv", ["millstream", "no-such-command"])
    with pytest.raises(SystemExit):
        command_line.main()
    assert "no-such-command" in capsys.readouterr().err
    assert gc.get_threshold()[0] > 10_000
    assert gc.get_freeze_count() > len(gc.get_objects())
