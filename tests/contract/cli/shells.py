"""Scripts in which `millstream` is the tested command."""

import os
import subprocess
import sys
from typing import Any

from tests.conditions import PATIENCE_S

SHELL = """
set -euo pipefail
millstream() { "$PYTHON" -m api.cli "$@"; }
"""


def bash(script: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a script in which `millstream` is the tested command."""
    return subprocess.run(
        ["bash", "-c", SHELL + script],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**os.environ, "PYTHON": sys.executable},
        **more,
    )
