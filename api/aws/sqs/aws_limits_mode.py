"""Behaviour that follows AWS only if its limits are enforced (`limits=aws`)."""

from typing import NamedTuple

from storage.domain import limits

NAME_REUSE_DELAY_MS = limits.MINUTE_MS  # before a deleted queue's name can be reused


class AwsLimits(NamedTuple):
    """Setting that enforces AWS limits where Millstream's are wider."""

    enforced: bool
