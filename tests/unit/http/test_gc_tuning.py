"""Garbage-collector tuning: high thresholds, and frozen long-lived objects.

In processes of their own: a collection takes seconds in one that has collected all tests.
"""

import subprocess
import sys

FREEZE = """
import gc
from api.server import gc_tuning

gc_tuning.freeze_startup_heap()
assert gc.get_freeze_count() > len(gc.get_objects())
"""

COMMAND = """
import gc, sys
from api.cli import main as command_line

sys.argv = ["millstream", "no-such-command"]
try:
    command_line.main()
except SystemExit:
    pass
assert gc.get_threshold()[0] > 10_000
assert gc.get_freeze_count() > len(gc.get_objects())
"""


def _run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_startup_heap_is_frozen():
    _run(FREEZE)


def test_command_raises_threshold_and_freezes_at_exit():
    assert "no-such-command" in _run(COMMAND)
