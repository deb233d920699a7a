"""Spending what a caller may: rates of its credential, of its namespace, and of what the call is about.

    spend ─▶ the leases of every policy have enough ─▶ taken, without waiting
       └──▶ one has not ─▶ opens later, as is known ─▶ QuotaExceeded, without asking
                     └──▶ the store is asked, once for all who wait ─▶ enough, or QuotaExceeded

`storage.quotas.gcra` tells what leases let pass beyond a rate, and `storage.domain.quotas` which policies there are.
Long polls cost one call. Where the store does not answer, StorageUnavailable: a limit does not go because it is not known.
"""

from collections.abc import Awaitable, Sequence
from functools import partial

from storage.catalog.namespaces import Namespaces
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.domain.clock import Clock
from storage.domain.errors import QuotaExceeded, QuotaTooSmall
from storage.domain.quotas import Namespace, Quotas, QuotaStanding, Rates
from storage.quotas.rate_limiter import Cost, Plan, Policy
from storage.redis.counters.rate_limits import HotRates


class QuotaEnforcer:
    """Holds callers to their rates and their places."""

    def __init__(self, hot: HotRates, namespaces: Namespaces, clock: Clock) -> None:
        self._hot = hot
        self._namespaces = namespaces
        self._clock = clock
        self._table: object = None  # that the rest was made from
        self._free: frozenset[str] = frozenset()
        self._plans: dict[tuple[str, str, str], Plan] = {}
        self._low: set[Policy] = set()
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
        if known is None or (known.rates is not rates and known.rates != rates):
            if principal.namespace not in self._namespaces.table:
                return self._spend_somewhere(principal, resource, cost)
            known = self._plan(principal, resource)
        now_ms = self._clock.now_ms()
        return None if known.spend(cost, now_ms) else self._ask(known, cost, now_ms)

    def low_standings(self, principal: Principal, resource: str) -> Sequence[QuotaStanding]:
        """How a caller stands with the policies of which little is left, as far as this process knows."""
        if not self._low:
            return ()
        known = self._plans.get((principal.credential, principal.namespace, resource))
        if known is None:
            return ()
        now_ms = self._clock.now_ms()
        low = [policy for policy in known.policies if policy in self._low]
        return [one for policy in low for one in policy.standings(now_ms)]

    def _ask(self, plan: Plan, cost: Cost, now_ms: int) -> Awaitable[None]:
        """Ask the store for what the leases do not have, unless it is known already that there is not enough."""
        for policy in plan.policies:
            if (refusal := policy.refusal(cost, now_ms)) is not None:
                self.count(policy.kind)
                raise refusal
        return self._acquire(plan, cost)

    async def _acquire(self, plan: Plan, cost: Cost) -> None:
        """Take from every policy, or from none."""
        taken: list[Policy] = []
        try:
            for policy in plan.policies:
                try:
                    await policy.acquire(cost, self._clock)
                except (QuotaExceeded, QuotaTooSmall):
                    self.count(policy.kind)
                    raise
                taken.append(policy)
        except BaseException:
            for policy in taken:
                policy.give_back(cost)
            raise

    def count(self, kind: str) -> None:
        """One call was refused."""
        self.refused[kind] = self.refused.get(kind, 0) + 1

    async def _spend_somewhere(self, principal: Principal, resource: str, cost: Cost) -> None:
        """In a namespace that this process may not have heard of yet."""
        await self._namespaces.find(principal.namespace)
        if self._namespaces.table is not self._table:
            self._begin_anew()
        plan, now_ms = self._plan(principal, resource), self._clock.now_ms()
        if not plan.spend(cost, now_ms):
            await self._ask(plan, cost, now_ms)

    def _begin_anew(self) -> None:
        """The namespaces have changed; policies that are as they were keep what they have taken."""
        table = self._namespaces.table
        self._table = table
        self._free = frozenset(name for name, one in table.items() if not one.quotas.limits_calls)
        self._plans.clear()

    def _plan(self, principal: Principal, resource: str) -> Plan:
        namespace = self._namespaces.table.get(principal.namespace)
        plan = Plan(principal.rates, self._policies_of(principal, namespace, resource))
        if len(self._plans) >= limits.POLICIES_KEPT_MAX:
            self._plans.clear()
            self._policies.clear()
            self._low.clear()
        key = (principal.credential, principal.namespace, resource)
        self._plans[key] = plan
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
            known = Policy(self._hot, self._low, namespace, kind, name, bucket, rates)
            self._policies[namespace, bucket] = known
        return known
