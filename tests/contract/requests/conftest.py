"""Fixtures of topics, whose messages can be requests as those of queues."""

from tests.contract.topics.conftest import api, router, topic

__all__ = ["api", "router", "topic"]
