"""How a caller stands with its quotas, as headers: draft-ietf-httpapi-ratelimit-headers.

    RateLimit-Policy: "namespace";q=100;w=1          so many may pass in so many seconds
    RateLimit: "namespace";r=12;t=1                  so many are left, and all are back then

They go on answers that refuse for a quota, and on others once less than a fifth is left. A window is `burst_seconds`,
whole; what it holds comes back evenly. Each process knows what it has heard: a tenth of a second may be missing.
"""

from collections.abc import Sequence

from storage.domain.quotas import QuotaStanding

Headers = tuple[tuple[bytes, bytes], ...]

_PLAIN_UNIT = "requests"


def rate_limit_headers(standings: Sequence[QuotaStanding]) -> Headers:
    """Both fields; none without a policy to tell of."""
    if not standings:
        return ()
    policies = ", ".join(map(_policy, standings))
    limits = ", ".join(f'"{one.policy}";r={one.remaining};t={one.reset_s}' for one in standings)
    return ((b"ratelimit-policy", policies.encode()), (b"ratelimit", limits.encode()))


def _policy(one: QuotaStanding) -> str:
    unit = "" if one.unit == _PLAIN_UNIT else f';qu="{one.unit}"'
    return f'"{one.policy}";q={one.quota};w={one.window_s}{unit}'
