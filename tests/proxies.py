"""Reverse proxies as in docs/how-to/tls.md, except ports, certificates and addresses."""

import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from storage.embedded.processes import child_setup
from tests.aws_clients import aws_client
from tests.conditions import PATIENCE_S
from tests.debian import debian_program, libraries
from tests.documentation import DOCS, blocks
from tests.tls import Certificates, make_certificates

PAGE = DOCS / "how-to" / "tls.md"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{ }}
http {{
    access_log {folder}/log;
    {temporary}
    {page}
}}
"""

# Values of the page that a test replaces.
SERVICE = "127.0.0.1:8080"
CERTIFICATE, KEY = "/etc/millstream/tls/fullchain.pem", "/etc/millstream/tls/privkey.pem"
BOTH = "/etc/haproxy/millstream.pem"


class Proxy:
    """A running proxy at `url`, with a certificate of `ca`.

    `left`: what its log shows for a client that disconnected before the response.
    """

    def __init__(self, listener: socket.socket, ca: Path, log: Path, left: str) -> None:
        self.url = f"https://localhost:{listener.getsockname()[1]}"
        self.ca = ca
        self._log = log
        self._left = left

    def client(self) -> httpx.Client:
        """Return a client of the proxied service."""
        trust = ssl.create_default_context(cafile=str(self.ca))
        return httpx.Client(base_url=self.url, verify=trust, timeout=30)

    def aws(self, service: str) -> Any:
        """Return an unmodified boto3 client without retries."""
        return aws_client(service, self.url, ca=str(self.ca))

    def has_seen_one_leave(self) -> bool:
        """Return whether any client has disconnected before its response."""
        return self._left in self.log()

    def log(self) -> str:
        """Return the access log."""
        return self._log.read_text()


@contextmanager
def running_nginx(service: str, folder: Path) -> Iterator[Proxy]:
    """Run nginx on a socket inherited by `NGINX`, as at an upgrade: no port can collide."""
    made = make_certificates(folder)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        page = _page(
            "nginx",
            {
                SERVICE: service,
                "listen 443 ssl": f"listen 127.0.0.1:{listener.getsockname()[1]} ssl",
                CERTIFICATE: str(made.server),
                KEY: str(made.server_key),
            },
        )
        temporary = "".join(f"{name}_temp_path {folder}/{name};" for name in TEMPORARY)
        user = "" if os.geteuid() else "user root;"
        path = folder / "nginx.conf"
        path.write_text(NGINX.format(folder=folder, temporary=temporary, page=page, user=user))
        words = [debian_program("nginx"), "-e", f"{folder}/error.log", "-c", str(path)]
        with _running(words, listener, folder, {"NGINX": f"{listener.fileno()};"}):
            yield Proxy(listener, made.ca, folder / "log", " 499 ")


@contextmanager
def running_haproxy(service: str, folder: Path) -> Iterator[Proxy]:
    """Run HAProxy on an inherited socket."""
    made = make_certificates(folder)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        page = _page(
            "haproxy",
            {
                SERVICE: service,
                "bind :443": f"bind fd@{listener.fileno()}",
                BOTH: str(_in_one_file(made, folder)),
                "mode http\n": "mode http\n    log stdout format raw local0\n    option httplog\n",
            },
        )
        path = folder / "haproxy.cfg"
        path.write_text(page)
        words = [debian_program("haproxy"), "-f", str(path)]
        with _running(words, listener, folder, libraries()):
            yield Proxy(listener, made.ca, folder / "output", " CH-- ")


def _page(language: str, ours: dict[str, str]) -> str:
    [page] = [block.text for block in blocks(PAGE) if block.language == language]
    for theirs, own in ours.items():
        assert theirs in page
        page = page.replace(theirs, own)
    return page


def _in_one_file(made: Certificates, folder: Path) -> Path:
    both = folder / "both.pem"
    both.write_bytes(made.server.read_bytes() + made.server_key.read_bytes())
    return both


@contextmanager
def _running(
    words: Sequence[str], listener: socket.socket, folder: Path, more: dict[str, str]
) -> Iterator[None]:
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            words,
            env={**os.environ, **more},
            stdout=output,
            stderr=output,
            pass_fds=[listener.fileno()],
            preexec_fn=child_setup(signal.SIGTERM),
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
