"""Requests of the in-memory service, and their replies."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream_client.testing.definitions import Clock, moment
from millstream_client.testing.problems import Problem
from millstream_client.testing.queues import MemoryQueue
from millstream_client.testing.topics.routed_log import RoutedLog

FINAL = frozenset({"reply_taken", "reply_too_late"})
"""Refusals after which a message is acknowledged nevertheless."""


@dataclass
class _Request:
    deadline: float
    expires_at: float
    replies_max: int
    replies: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)


class MemoryRequests:
    """Requests by their token."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._requests: dict[str, _Request] = {}

    def send(self, queue: MemoryQueue, fields: Mapping[str, Any]) -> str:
        """Send a request to a queue; return its token. Raises Problem."""
        message = _message(fields, is_fifo=queue.is_fifo)
        queue.send([message])
        return self._open(message["reply_to"], fields)

    def publish(self, topic: RoutedLog, fields: Mapping[str, Any]) -> str:
        """Publish a request to a topic; return its token. Raises Problem."""
        message = _message(fields, is_fifo=topic.is_fifo)
        topic.accept([message])
        return self._open(message["reply_to"], fields)

    def _open(self, token: str, fields: Mapping[str, Any]) -> str:
        timeout = float(fields.get("timeout_seconds", 20))
        deadline = self._now() + timeout
        expires_at = deadline + float(fields.get("reply_ttl_seconds", 60))
        replies_max = int(fields.get("replies_max", 1))
        self._requests[token] = _Request(deadline, expires_at, replies_max)
        return token

    def reply(self, token: str, fields: Mapping[str, Any], key: str) -> None:
        """Add a reply; a repeat with the same key adds nothing. Raises Problem."""
        request = self._get(token)
        if key and key in request.keys:
            return
        if self._now() >= request.deadline:
            raise Problem("reply_too_late", "The deadline of the request has passed.")
        if len(request.replies) >= request.replies_max:
            raise Problem("reply_taken", "The request has as many replies as it accepts.")
        optional = {name: fields[name] for name in ("content_type", "headers") if fields.get(name)}
        at = moment(self._now())
        request.replies.append({"body": fields["body"], **optional, "at": at})
        request.keys.add(key)

    def replies(self, token: str) -> dict[str, Any]:
        """Return the replies so far. Raises Problem."""
        request = self._get(token)
        is_overdue = self._now() >= request.deadline
        if not is_overdue and len(request.replies) < request.replies_max:
            return {"request": token, "replies": request.replies, "complete": False}
        return {
            "request": token,
            "replies": request.replies,
            "complete": True,
            "timed_out": is_overdue and not request.replies,
        }

    def settle(self, queue: MemoryQueue, settlement: dict[str, Any]) -> dict[str, Any]:
        """Put the reply of a settlement, if it has one, then settle."""
        refusal: dict[str, Any] = {}
        if reply := settlement.get("reply"):
            try:
                self.reply(reply["request"], reply, settlement["receipt_handle"])
            except Problem as problem:
                if problem.code not in FINAL:
                    return {"status": "error", "error": problem.item}
                refusal = {"reply_error": problem.item}
        [result] = queue.settle([settlement])
        return result if "error" in result else {**result, **refusal}

    def _get(self, token: str) -> _Request:
        request = self._requests.get(token)
        if request is None or self._now() >= request.expires_at:
            raise Problem("request_not_found", "The request does not exist.")
        return request


_CONTENT = ("body", "content_type", "headers", "group", "subject", "key", "priority")


def _message(fields: Mapping[str, Any], *, is_fifo: bool) -> dict[str, Any]:
    """Return the message of a request, with a new token."""
    token = uuid.uuid4().hex
    timeout = float(fields.get("timeout_seconds", 20))
    content = {name: fields[name] for name in _CONTENT if name in fields}
    dedup_id = fields.get("dedup_id") or (token if is_fifo else "")
    return {**content, "dedup_id": dedup_id, "ttl_seconds": timeout, "reply_to": token}
