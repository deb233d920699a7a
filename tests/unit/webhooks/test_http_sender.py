"""The HTTP sender can be set up with every URL that a webhook may have."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consumers.webhooks.http_sender import Sender
from storage.domain.access.egress import Egress
from storage.domain.clock import ManualClock
from storage.domain.errors import ValidationFailed
from storage.domain.names import WebhookName
from storage.domain.webhooks import LeasedWebhook, Source, Webhook, WebhookLease, WebhookSpec

EGRESS = Egress.of(["127.0.0.1"])
HOSTS = st.one_of(
    st.text("0123456789abcdefxXnN.-_:[]%~,*", max_size=30),
    st.tuples(*[st.integers(0, 999)] * 4).map(lambda parts: ".".join(map(str, parts))),
    st.from_regex(r"\[[0-9a-fv:.%]{1,20}\]", fullmatch=True),
    st.from_regex(r"xn--[a-z0-9-]{0,12}(\.com)?", fullmatch=True),
)


def webhook(url: str) -> LeasedWebhook:
    stored = Webhook(
        name=WebhookName("hook"),
        webhook_id="w1",
        spec=WebhookSpec(source=Source.of("queue:orders"), url=url),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )
    return LeasedWebhook(stored, WebhookLease("w1", 1), ())


@given(HOSTS, st.sampled_from(["", ":443", ":80", ":0", ":99999", ":x"]))
@example("8.8.8.999", "")
@example("010.8.8.8", "")
@example("[v1.x]", "")
@example("xn--", "")
def test_sender_starts_with_every_accepted_url(host, port):
    """One webhook to https://8.8.8.999/ ended the deliverer, and with it every other webhook."""
    url = f"https://{host}{port}/hook"
    try:
        EGRESS.check_url(url)
    except ValidationFailed:
        return

    Sender(served=webhook(url), egress=EGRESS, clock=ManualClock())


@pytest.mark.parametrize(
    "host", ["example.com", "8.8.8.8", "[2606:4700::1111]", "xn--bcher-kva.example"]
)
def test_common_hosts_are_accepted(host):
    EGRESS.check_url(f"https://{host}/hook")
