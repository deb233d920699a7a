"""`millstream webhook resend`."""

import pytest

from tests.cli_commands import millstream

pytestmark = pytest.mark.usefixtures("at_the_service")


def test_deliveries_are_counted_and_resent_by_filter(orders, client, name, log_delivery):
    hook = {"source": f"queue:{orders}", "url": "http://127.0.0.1:9/", "enabled": False}
    client.put(f"/v1/webhooks/{name}", json=hook)
    log_delivery(name, "event-1")
    resend = ("webhook", "resend", name)

    counted = millstream(*resend, "--status", "delivered", "--dry-run", "-o", "json").json
    unconfirmed = millstream(*resend, "--status", "delivered")
    failed = millstream(*resend, "--status", "delivered", "--until", "1s", "--yes")
    both = millstream(*resend, "event-1", "--status", "delivered")

    assert counted == {"matched": 1}
    assert [done.code for done in (unconfirmed, failed, both)] == [2, 1, 2]
    assert "1 delivery of" in unconfirmed.err
    assert "Delivered 0, failed 1, skipped 0." in failed.err
    assert "give a delivery id, or options" in both.err
