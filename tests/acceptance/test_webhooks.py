"""The example receiver of docs/how-to/webhooks.md, whose session test_documentation.py runs."""

import importlib.util
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import standardwebhooks

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "how-to" / "webhooks.md"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = 1_700_000_000


def test_page_shows_the_tested_program():
    shown = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)

    assert shown == [(DOCS / "examples" / "receive_webhooks.py").read_text()]


def signed(secret: str = SECRET, at_s: int = NOW, body: bytes = b"hello") -> dict[str, str]:
    moment = datetime.fromtimestamp(at_s, UTC)
    signature = standardwebhooks.Webhook(secret).sign("a", moment, body.decode())
    return {
        "webhook-id": "a",
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,bm90aGluZw== {signature}",
    }


@pytest.fixture(scope="module")
def verified():
    """The verification function of the page's program."""
    spec = importlib.util.spec_from_file_location("receive", DOCS / "examples/receive_webhooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.verified


def test_receiver_of_page_accepts_only_valid_signatures(verified):
    other = "whsec_" + "A" * 32

    assert verified(SECRET, signed(), b"hello", NOW + 10)
    assert not verified(SECRET, signed(), b"hellO", NOW)
    assert not verified(other, signed(), b"hello", NOW)
    assert not verified(SECRET, signed(), b"hello", NOW + 301)
    assert not verified(SECRET, signed(at_s=NOW + 301), b"hello", NOW)
    assert not verified(SECRET, {**signed(), "webhook-id": "b"}, b"hello", NOW)
