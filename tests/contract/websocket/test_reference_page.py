"""The examples of docs/reference/push.md run against a service."""

import re
import subprocess
import sys
from pathlib import Path

from api.websocket.frames import ClientFrame, Close, ServerFrame

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "push.md").read_text()
SOCKET = PAGE[PAGE.index("## WebSocket") : PAGE.index("## Server-sent events")]


def test_program_of_reference_page_runs(service_url, client, name):
    client.put(f"/v1/queues/{name}").raise_for_status()
    [program] = re.findall(r"```python\n(.*?)```", SOCKET, re.DOTALL)
    program = program.replace("ws://127.0.0.1:8080", service_url.replace("http", "ws"))
    program = program.replace("queue:tickets", f"queue:{name}")

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )

    assert done.returncode == 0, done.stderr
    session, body, id_ = done.stdout.split()
    assert len(session) >= 20
    assert (body, id_) == ("hello", "3")
    stats = client.get(f"/v1/queues/{name}/stats").json()
    assert stats["ready"] + stats["in_flight"] == 0


def test_every_frame_is_on_reference_page():
    tags = {kind.__struct_config__.tag for kind in (ClientFrame | ServerFrame).__args__}

    assert tags == {word for word in tags if f"`{word}`" in SOCKET}


def test_every_close_code_of_reference_page_exists():
    codes = {value for name, value in vars(Close).items() if name.isupper()}
    on_the_page = {int(code) for code in re.findall(r"\b([14]\d{3})\b", SOCKET)} - {4499, 4500}

    assert on_the_page <= codes
