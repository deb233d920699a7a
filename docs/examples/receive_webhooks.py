"""Webhook receiver that rejects unsigned and old events and skips duplicates.

WEBHOOK_SECRET=whsec_… python receive_webhooks.py 9000
"""

import base64
import hashlib
import hmac
import os
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer

SIGNED = ("webhook-id", "webhook-timestamp", "webhook-signature")
TOLERANCE_S = 300


def verified(secret: str, headers: Mapping[str, str], body: bytes, now_s: float) -> bool:
    """Return whether the secret made the Standard Webhooks signature, within the tolerance."""
    event_id, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(now_s - int(timestamp)) > TOLERANCE_S:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256)
    expected = "v1," + base64.b64encode(digest).decode()
    signatures = headers["webhook-signature"].split()  # several during a rotation
    return any(hmac.compare_digest(expected, signature) for signature in signatures)


class Hooks(BaseHTTPRequestHandler):
    """Handler that returns 204 once an event is processed; otherwise it is delivered again."""

    secret = ""
    done: set[str] = set()  # a database would keep them after a restart

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        signed = {name: self.headers.get(name, "") for name in SIGNED}
        try:
            trusted = verified(self.secret, signed, body, time.time())
        except ValueError:
            trusted = False
        if not trusted:
            self.send_error(401)
            return
        event_id = self.headers["webhook-id"]
        if event_id not in self.done:  # at-least-once delivery: skip duplicates
            sys.stdout.write(f"{event_id} {body.decode()}\n")
            sys.stdout.flush()
            self.done.add(event_id)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    Hooks.secret = os.environ["WEBHOOK_SECRET"]
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Hooks).serve_forever()
