"""Quotas: how much of a resource a tenant may have, and at what rate.

    caller            policy                       one bucket for
    a credential      key                          the credential
    a namespace       namespace                    the namespace
                      queue/orders-*, stream/*     each resource that the glob matches

A call passes when every policy that applies to it has capacity. `storage.quotas.enforcer` keeps the buckets.
"""

from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache
from math import isfinite
from re import Pattern
from re import compile as compile_pattern

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, ValidationFailed

_GLOB = compile_pattern(r"(queue|stream|group)/[A-Za-z0-9_.*?-]{1,80}")


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Rate limits per second; None: no limit. `messages` and `bytes` count those sent or put.

    `burst_seconds`: the burst that may pass after a pause, in seconds' worth of the rate.
    """

    calls_per_second: float | None = None
    messages_per_second: float | None = None
    bytes_per_second: float | None = None
    burst_seconds: float = 1.0

    @property
    def is_unlimited(self) -> bool:
        """True if nothing is limited."""
        return self.per_second == (None, None, None)

    @property
    def per_second(self) -> tuple[float | None, float | None, float | None]:
        """Calls, messages, bytes."""
        return self.calls_per_second, self.messages_per_second, self.bytes_per_second

    def faults(self, pointer: str) -> Iterator[FieldFault]:
        """Yield the validation faults, with JSON Pointers below `pointer`."""
        names = ("calls_per_second", "messages_per_second", "bytes_per_second")
        for name, rate in zip(names, self.per_second, strict=True):
            if rate is not None and not (
                isfinite(rate) and limits.RATE_MIN <= rate <= limits.RATE_MAX
            ):
                detail = f"must be {limits.RATE_MIN} to {limits.RATE_MAX}, or null"
                yield FieldFault(f"{pointer}/{name}", detail, "out_of_range")
        low, high = limits.BURST_SECONDS_MIN, limits.BURST_SECONDS_MAX
        if not low <= self.burst_seconds <= high:
            detail = f"must be {low} to {high}"
            yield FieldFault(f"{pointer}/burst_seconds", detail, "out_of_range")


class ResourceRates(msgspec.Struct, frozen=True):
    """Rates of each resource that a glob matches: `queue/orders-*`, `stream/*`."""

    resources: str
    rates: Rates

    def speaks_of(self, resource: str) -> bool:
        """Return whether `resource`, such as `queue/orders-eu`, has a bucket of these rates."""
        return _pattern(self.resources).match(resource) is not None


class Quotas(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Quotas of a namespace; None: no limit.

    `connections_max`: concurrent WebSockets, over all processes. `stored_bytes_max`: bytes that its queues and streams
    have in the hot store.
    """

    rates: Rates | None = None
    resources: tuple[ResourceRates, ...] = ()
    connections_max: int | None = None
    queues_max: int | None = None
    streams_max: int | None = None
    stored_bytes_max: int | None = None

    @property
    def limits_calls(self) -> bool:
        """True if a call may ever be refused for its rate."""
        return self.rates is not None or bool(self.resources)

    def check(self) -> None:
        """Raise ValidationFailed with every fault."""
        if faults := tuple(self._faults()):
            raise ValidationFailed("The quotas are invalid.", *faults)

    def _faults(self) -> Iterator[FieldFault]:
        if self.rates is not None:
            yield from self.rates.faults("/rates")
        if len(self.resources) > limits.RESOURCE_RATES_MAX:
            detail = f"At most {limits.RESOURCE_RATES_MAX} globs"
            yield FieldFault("/resources", detail, "too_many")
        globs = [resource_rates.resources for resource_rates in self.resources]
        for position, resource_rates in enumerate(self.resources):
            if not _GLOB.fullmatch(resource_rates.resources):
                detail = "must be queue/, stream/ or group/ and a name; * and ? are wildcards"
                yield FieldFault(f"/resources/{position}/resources", detail, "invalid")
            elif resource_rates.resources in globs[:position]:
                yield FieldFault(f"/resources/{position}/resources", "is duplicated", "duplicate")
            yield from resource_rates.rates.faults(f"/resources/{position}/rates")
        for name in ("connections_max", "queues_max", "streams_max", "stored_bytes_max"):
            most = getattr(self, name)
            if most is not None and not 0 <= most <= limits.OFFSET_MAX:
                yield FieldFault(f"/{name}", "must be at least 0, or null", "out_of_range")


NO_QUOTAS = Quotas()


class Namespace(msgspec.Struct, frozen=True):
    """A tenant. `account_id` is its fixed 12-digit number, which AWS clients see.

    `stored_bytes` is the size last measured by the sweeper, if it is limited; `over_storage_quota`: it exceeds
    the limit; stored as `over`.
    """

    name: str
    account_id: str
    quotas: Quotas
    version: int
    created_at_ms: int
    changed_at_ms: int
    stored_bytes: int | None = None
    over_storage_quota: bool = msgspec.field(default=False, name="over")

    @property
    def spec(self) -> Quotas:
        """Its quotas, the part that an administrator sets."""
        return self.quotas


class QuotaStatus(msgspec.Struct, frozen=True):
    """A caller's remaining quota for one unit of one policy.

    `quota` may pass in `window_s`; `remaining` is the part that this process knows to be left, `reset_s` the time until
    all of it is available again.
    """

    policy: str
    unit: str
    quota: int
    window_s: int
    remaining: int
    reset_s: int


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> Pattern[str]:
    return compile_pattern(translate(glob))
