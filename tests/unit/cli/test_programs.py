"""Command lines of a deployment's programs."""

import socket
from pathlib import Path

from api.cli.up.programs import api_programs
from api.config.settings import Settings


def test_keep_alive_follows_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        usual, longer = (
            api_programs(settings, listener, tmp_path)[0].command
            for settings in (Settings(), Settings(keep_alive_seconds=620))
        )
    assert "--timeout-keep-alive=120" in usual
    assert "--timeout-keep-alive=620" in longer
