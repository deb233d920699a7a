"""Spending what a caller may: rates of its credential, of its namespace, and of what the call is about.

    spend ─▶ the leases of every policy have enough ─▶ taken, without waiting
       └──▶ one has not ─▶ opens later, as is known ─▶ QuotaExceeded, without asking
                     └──▶ the store is asked, once for all who wait ─▶ enough, or QuotaExceeded

`storage.domain.gcra` tells what leases let pass beyond a rate, and `storage.domain.quotas` which policies there are.
Long polls cost one call. Where the store does not answer, StorageUnavailable: a limit does not go because it is not known.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from math import ceil

from storage.domain import limits
from storage.domain.access import Principal
from storage.domain.clock import Clock
from storage.domain.errors import OutcomeUnknown, QuotaExceeded, QuotaTooSmall, StorageUnavailable
from storage.domain.gcra import Lease
from storage.domain.quotas import Namespace, Quotas, QuotaStanding, Rates
from storage.namespaces import Namespaces
from storage.redis.rates import Granted, HotRates, Wanted

MEASURES = ("calls", "messages", "bytes")
_UNITS = ("requests", "messages", "content-bytes")
_ASKS_MAX = 5  # rounds of one call: each time others took what was granted

Cost = tuple[int, int, int]
"""Calls, messages, bytes."""


class Policy:
    """Rates of one bucket, and what this process has taken of them."""

    __slots__ = (
        "_asked",
        "_asking",
        "_hot",
        "bucket",
        "kind",
        "leases",
        "low",
        "name",
        "namespace",
        "rates",
    )

    def __init__(
        self, hot: HotRates, namespace: str, kind: str, name: str, bucket: str, rates: Rates
    ) -> None:
        self.kind = kind
        self.name = name
        self.namespace = namespace
        self.bucket = bucket
        self.rates = rates
        self.leases: list[Lease | None] = [
            None if rate is None else Lease(rate, rates.burst_seconds) for rate in rates.per_second
        ]
        self.low = False
        """Whether little was left of some measure when the store was last asked."""
        self._hot = hot
        self._asking: asyncio.Task[None] | None = None
        self._asked = [0, 0, 0]

    def has(self, cost: Cost, now_ms: int) -> bool:
        """Whether so much can be spent without asking."""
        for lease, units in zip(self.leases, cost, strict=True):
            if lease is not None and units and not lease.has(units, now_ms):
                return False
        return True

    def take(self, cost: Cost) -> None:
        """Spend what is there."""
        for lease, units in zip(self.leases, cost, strict=True):
            if lease is not None:
                lease.left -= units

    def refuse_if_shut(self, cost: Cost, now_ms: int) -> None:
        """Raise QuotaExceeded when it is known that so much cannot pass yet, QuotaTooSmall when it never can."""
        for place, (lease, units) in enumerate(zip(self.leases, cost, strict=True)):
            if lease is None or not units:
                continue
            if units > lease.holds:
                raise self._too_small(place, lease, units)
            if wait_ms := lease.opens_in_ms(units, now_ms):
                raise self._exceeded(place, wait_ms, self.standings(now_ms))

    async def ask(self, cost: Cost, clock: Clock) -> None:
        """Have the store asked for so much more, together with whoever waits as well."""
        while self._asking is not None:  # it asks for others
            await asyncio.wait([self._asking])
            if self.has(cost, clock.now_ms()):
                return
        self._asked = [max(before, units) for before, units in zip(self._asked, cost, strict=True)]
        self._asking = asyncio.create_task(self._ask(clock))
        self._asking.add_done_callback(self._over)
        await asyncio.shield(self._asking)

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._asking = None
        if not task.cancelled():
            task.exception()  # whoever waited has seen it

    async def _ask(self, clock: Clock) -> None:
        asked, self._asked = self._asked, [0, 0, 0]
        now_ms = clock.now_ms()
        wanted = {
            name: Wanted(lease.unit_us, lease.holds_us, *lease.asks(units, now_ms))
            for name, lease, units in zip(MEASURES, self.leases, asked, strict=True)
            if lease is not None
        }
        try:
            found = await self._hot.lease(self.namespace, self.bucket, wanted, clock.script_time())
        except OutcomeUnknown:  # what was granted is lost, which harms nobody
            raise StorageUnavailable("The store did not answer in time.") from None
        self._note(found, now_ms)

    def _note(self, found: dict[str, Granted], now_ms: int) -> None:
        for name, lease in zip(MEASURES, self.leases, strict=True):
            if lease is not None:
                lease.granted(*found[name], now_ms)
        self.low = any(lease is not None and lease.is_low(now_ms) for lease in self.leases)

    def standings(self, now_ms: int) -> list[QuotaStanding]:
        """How callers stand with each measure."""
        window_s = max(1, round(self.rates.burst_seconds))
        return [
            QuotaStanding(
                self.name if place == 0 else f"{self.name}:{MEASURES[place]}",
                _UNITS[place],
                max(1, int((rate or 0.0) * window_s)),
                window_s,
                lease.remaining(now_ms),
                lease.reset_s(now_ms),
            )
            for place, (lease, rate) in enumerate(
                zip(self.leases, self.rates.per_second, strict=True)
            )
            if lease is not None
        ]

    def _exceeded(
        self, place: int, wait_ms: int, standings: Sequence[QuotaStanding]
    ) -> QuotaExceeded:
        rate, unit = self.rates.per_second[place], MEASURES[place]
        return QuotaExceeded(
            f"The quota '{self.name}' lets {rate:g} {unit} pass in a second; nothing happened.",
            policy=self.name,
            limit=rate,
            unit=unit,
            retry_after_seconds=max(1, ceil(wait_ms / limits.SECOND_MS)),
        ).standing(standings)

    def _too_small(self, place: int, lease: Lease, units: int) -> QuotaTooSmall:
        unit = MEASURES[place]
        return QuotaTooSmall(
            f"The call has {units} {unit}, and the quota '{self.name}' never lets more than {lease.holds} pass at "
            "once: send less at a time.",
            policy=self.name,
            limit=lease.holds,
            unit=unit,
        )


Plan = tuple[Policy, ...]
"""The policies of one caller and one resource."""


class QuotaKeeper:
    """Holds callers to their rates and their places."""

    def __init__(self, hot: HotRates, namespaces: Namespaces, clock: Clock) -> None:
        self._hot = hot
        self._namespaces = namespaces
        self._clock = clock
        self._table: object = None  # that the rest was made from
        self._free: frozenset[str] = frozenset()
        self._plans: dict[tuple[str, str, str], tuple[Rates | None, Plan]] = {}
        self._policies: dict[tuple[str, str], Policy] = {}
        self.refused: dict[str, int] = {}
        """How many calls were refused since somebody counted, by kind of policy."""

    def spend(
        self,
        principal: Principal,
        resource: str,
        *,
        calls: int = 1,
        messages: int = 0,
        size_bytes: int = 0,
    ) -> Awaitable[None] | None:
        """Take what a call costs; `resource` is such as `queue/orders`, or '' for none.

        Gives something to wait for only where the store must be asked. Raises QuotaExceeded, QuotaTooSmall,
        NamespaceNotFound, StorageUnavailable.
        """
        if self._namespaces.table is not self._table:
            self._begin_anew()
        rates = principal.rates
        if rates is None and principal.namespace in self._free:
            return None
        known = self._plans.get((principal.credential, principal.namespace, resource))
        cost = (calls, messages, size_bytes)
        if known is not None and (known[0] is rates or known[0] == rates):
            return self._spend(known[1], cost)
        if principal.namespace not in self._namespaces.table:
            return self._spend_somewhere(principal, resource, cost)
        return self._spend(self._plan(principal, resource), cost)

    def low_standings(self, principal: Principal, resource: str) -> Sequence[QuotaStanding]:
        """How a caller stands with the policies of which little is left, as far as this process knows."""
        if principal.rates is None and principal.namespace in self._free:
            return ()
        known = self._plans.get((principal.credential, principal.namespace, resource))
        low = [policy for policy in known[1] if policy.low] if known is not None else ()
        if not low:
            return ()
        now_ms = self._clock.now_ms()
        return [one for policy in low for one in policy.standings(now_ms)]

    def _spend(self, plan: Plan, cost: Cost) -> Awaitable[None] | None:
        now_ms = self._clock.now_ms()
        for policy in plan:
            if not policy.has(cost, now_ms):
                self._refuse_if_shut(plan, cost, now_ms)
                return self._ask_and_spend(plan, cost)
        for policy in plan:
            policy.take(cost)
        return None

    async def _ask_and_spend(self, plan: Plan, cost: Cost) -> None:
        for _ in range(_ASKS_MAX):
            for policy in plan:
                if not policy.has(cost, self._clock.now_ms()):
                    await policy.ask(cost, self._clock)
            now_ms = self._clock.now_ms()
            if all(policy.has(cost, now_ms) for policy in plan):
                for policy in plan:
                    policy.take(cost)
                return
            self._refuse_if_shut(plan, cost, now_ms)
        self.count(plan[0].kind)  # there is some, but others are always quicker
        raise QuotaExceeded(policy=plan[0].name, retry_after_seconds=1)

    def _refuse_if_shut(self, plan: Plan, cost: Cost, now_ms: int) -> None:
        for policy in plan:
            try:
                policy.refuse_if_shut(cost, now_ms)
            except (QuotaExceeded, QuotaTooSmall):
                self.count(policy.kind)
                raise

    def count(self, kind: str) -> None:
        """One call was refused."""
        self.refused[kind] = self.refused.get(kind, 0) + 1

    async def _spend_somewhere(self, principal: Principal, resource: str, cost: Cost) -> None:
        """In a namespace that this process may not have heard of yet."""
        await self._namespaces.find(principal.namespace)
        if self._namespaces.table is not self._table:
            self._begin_anew()
        waiting = self._spend(self._plan(principal, resource), cost)
        if waiting is not None:
            await waiting

    def _begin_anew(self) -> None:
        """The namespaces have changed; policies that are as they were keep what they have taken."""
        table = self._namespaces.table
        self._table = table
        self._free = frozenset(name for name, one in table.items() if not one.quotas.limits_calls)
        self._plans.clear()

    def _plan(self, principal: Principal, resource: str) -> Plan:
        namespace = self._namespaces.table.get(principal.namespace)
        plan = tuple(self._policies_of(principal, namespace, resource))
        if len(self._plans) >= limits.POLICIES_KEPT_MAX:
            self._plans.clear()
            self._policies.clear()
        key = (principal.credential, principal.namespace, resource)
        self._plans[key] = (principal.rates, plan)
        return plan

    def _policies_of(
        self, principal: Principal, namespace: Namespace | None, resource: str
    ) -> list[Policy]:
        quotas = Quotas() if namespace is None else namespace.quotas
        policy = partial(self._policy, principal.namespace)
        found = []
        if principal.rates is not None:
            found.append(policy("key", "key", f"key/{principal.credential}", principal.rates))
        if quotas.rates is not None:
            found.append(policy("namespace", "namespace", "namespace", quotas.rates))
        for one in quotas.resources:
            if resource and one.speaks_of(resource):
                bucket = f"{one.resources}={resource}"
                found.append(policy("resource", one.resources, bucket, one.rates))
        return [one for one in found if not one.rates.says_nothing]

    def _policy(self, namespace: str, kind: str, name: str, bucket: str, rates: Rates) -> Policy:
        known = self._policies.get((namespace, bucket))
        if known is None or known.rates != rates:
            known = Policy(self._hot, namespace, kind, name, bucket, rates)
            self._policies[namespace, bucket] = known
        return known
