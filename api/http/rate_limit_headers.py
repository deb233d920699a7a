"""Rate limit headers with a caller's quotas: draft-ietf-httpapi-ratelimit-headers.

    RateLimit-Policy: "namespace";q=100;w=1          at most q in w seconds
    RateLimit: "namespace";r=12;t=1                  r are left, and all are available again in t seconds

Responses rejected for a quota have them, and others once less than a fifth is left. A window is `burst_seconds`, whole;
its quota refills evenly. Each process has the state it last received: a tenth of a second may be missing.
"""

from collections.abc import Sequence

from storage.domain.quotas import QuotaStatus

Headers = tuple[tuple[bytes, bytes], ...]

_PLAIN_UNIT = "requests"


def rate_limit_headers(statuses: Sequence[QuotaStatus]) -> Headers:
    """Return both header fields, or none without a policy to report."""
    if not statuses:
        return ()
    policies = ", ".join(map(_policy, statuses))
    limits = ", ".join(f'"{one.policy}";r={one.remaining};t={one.reset_s}' for one in statuses)
    return ((b"ratelimit-policy", policies.encode()), (b"ratelimit", limits.encode()))


def _policy(status: QuotaStatus) -> str:
    unit = "" if status.unit == _PLAIN_UNIT else f';qu="{status.unit}"'
    return f'"{status.policy}";q={status.quota};w={status.window_s}{unit}'
