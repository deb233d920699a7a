"""Command lines of a deployment's programs."""

import socket
from pathlib import Path

from api.cli.up.programs import api_programs, uvicorn_protocol_options
from api.config.settings import Settings


def test_http2_follows_setting() -> None:
    both, only_http1 = (
        [word for word in uvicorn_protocol_options(settings) if word.startswith("--http=")][-1]
        for settings in (Settings(), Settings(http2=False))
    )

    assert both == "--http=api.server.protocol_negotiator:ProtocolNegotiator"
    assert only_http1 == "--http=api.server.http_protocol:FastPathProtocol"


def test_keep_alive_follows_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        usual, longer = (
            api_programs(settings, listener, tmp_path)[0].command
            for settings in (Settings(), Settings(keep_alive_seconds=620))
        )
    assert "--timeout-keep-alive=120" in usual
    assert "--timeout-keep-alive=620" in longer
