"""Quota enforcement: rates of the caller's credential, its namespace, and the resource.

    acquire ─▶ the leases of every policy have enough ─▶ taken, without waiting
         └──▶ one has not ─▶ known to open later ─▶ QuotaExceeded, without asking
                     └──▶ the store is asked, once for all waiting calls ─▶ enough, or QuotaExceeded

`storage.quotas.gcra` has the bound on what leases let pass beyond a rate, and `storage.domain.quotas` the policies.
Long polls cost one call. While the store does not answer, StorageUnavailable: a limit still holds when its state is
unknown.
"""

from collections.abc import Awaitable, Sequence
from functools import partial

from storage.catalog.namespaces import Namespaces
from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.domain.clock import Clock
from storage.domain.errors import QuotaExceeded, QuotaTooSmall
from storage.domain.quotas import Namespace, Quotas, QuotaStatus, Rates
from storage.hot_store.rates import RateStore
from storage.quotas.rate_limiter import Cost, LeasedTokenBucket, LimitSet


class QuotaEnforcer:
    """Enforcer of callers' rates and connection slots."""

    def __init__(self, hot: RateStore, namespaces: Namespaces, clock: Clock) -> None:
        self._hot = hot
        self._namespaces = namespaces
        self._clock = clock
        self._table: object = None  # that the rest was built from
        self._free: frozenset[str] = frozenset()
        self._plans: BoundedCache[tuple[str, str, str], LimitSet] = BoundedCache(
            limits.POLICIES_CACHED_MAX
        )
        self._policies: BoundedCache[tuple[str, str], LeasedTokenBucket] = BoundedCache(
            limits.POLICIES_CACHED_MAX
        )
        self.refused: dict[str, int] = {}
        """Number of calls rejected since the last collection, by kind of policy."""

    def acquire(
        self,
        principal: Principal,
        resource: str,
        *,
        calls: int = 1,
        messages: int = 0,
        size_bytes: int = 0,
    ) -> Awaitable[None] | None:
        """Spend the cost of a call; `resource` is such as `queue/orders`, or '' for none.

        Returns an awaitable only if the store must be asked. Raises QuotaExceeded, QuotaTooSmall,
        NamespaceNotFound, StorageUnavailable.
        """
        if self._namespaces.table is not self._table:
            self._rebuild_plans()
        rates = principal.rates
        if rates is None and principal.namespace in self._free:
            return None
        plan = self._plans.get((principal.credential, principal.namespace, resource))
        cost = (calls, messages, size_bytes)
        if plan is None or (plan.rates is not rates and plan.rates != rates):
            if principal.namespace not in self._namespaces.table:
                return self._acquire_unknown_namespace(principal, resource, cost)
            plan = self._plan(principal, resource)
        now_ms = self._clock.now_ms()
        return None if plan.acquire(cost, now_ms) else self._request_tokens(plan, cost, now_ms)

    def near_limit(self, principal: Principal, resource: str) -> Sequence[QuotaStatus]:
        """Return the remaining quotas of a caller's policies that are nearly used up.

        As far as this process knows.
        """
        if not self._plans:
            return ()
        plan = self._plans.get((principal.credential, principal.namespace, resource))
        if plan is None:
            return ()
        now_ms = self._clock.now_ms()
        low = [policy for policy in plan.policies if policy.is_low]
        return [status for policy in low for status in policy.statuses(now_ms)]

    def _request_tokens(self, plan: LimitSet, cost: Cost, now_ms: int) -> Awaitable[None]:
        """Acquire from the store what the leases lack.

        Fails without asking if there is known to be too little.
        """
        for policy in plan.policies:
            if (refusal := policy.refusal(cost, now_ms)) is not None:
                self.count(policy.kind)
                raise refusal
        return self._acquire(plan, cost)

    async def _acquire(self, plan: LimitSet, cost: Cost) -> None:
        """Acquire from every policy, or from none."""
        acquired: list[LeasedTokenBucket] = []
        try:
            for policy in plan.policies:
                try:
                    await policy.acquire(cost, self._clock)
                except (QuotaExceeded, QuotaTooSmall):
                    self.count(policy.kind)
                    raise
                acquired.append(policy)
        except BaseException:
            for policy in acquired:
                policy.release(cost)
            raise

    def count(self, kind: str) -> None:
        """Count a rejected call."""
        self.refused[kind] = self.refused.get(kind, 0) + 1

    async def _acquire_unknown_namespace(
        self, principal: Principal, resource: str, cost: Cost
    ) -> None:
        """Spend in a namespace that this process may not know yet."""
        await self._namespaces.find(principal.namespace)
        if self._namespaces.table is not self._table:
            self._rebuild_plans()
        plan, now_ms = self._plan(principal, resource), self._clock.now_ms()
        if not plan.acquire(cost, now_ms):
            await self._request_tokens(plan, cost, now_ms)

    def _rebuild_plans(self) -> None:
        """Rebuild for changed namespaces; unchanged policies keep their leases."""
        table = self._namespaces.table
        self._table = table
        self._free = frozenset(name for name, one in table.items() if not one.quotas.limits_calls)
        self._plans.clear()

    def _plan(self, principal: Principal, resource: str) -> LimitSet:
        namespace = self._namespaces.table.get(principal.namespace)
        plan = LimitSet(principal.rates, self._policies_of(principal, namespace, resource))
        key = (principal.credential, principal.namespace, resource)
        self._plans[key] = plan
        return plan

    def _policies_of(
        self, principal: Principal, namespace: Namespace | None, resource: str
    ) -> list[LeasedTokenBucket]:
        quotas = Quotas() if namespace is None else namespace.quotas
        policy = partial(self._policy, principal.namespace)
        policies = []
        if principal.rates is not None:
            policies.append(policy("key", "key", f"key/{principal.credential}", principal.rates))
        if quotas.rates is not None:
            policies.append(policy("namespace", "namespace", "namespace", quotas.rates))
        for quota in quotas.resources:
            if resource and quota.speaks_of(resource):
                bucket = f"{quota.resources}={resource}"
                policies.append(policy("resource", quota.resources, bucket, quota.rates))
        return [quota for quota in policies if not quota.rates.is_unlimited]

    def _policy(
        self, namespace: str, kind: str, name: str, bucket: str, rates: Rates
    ) -> LeasedTokenBucket:
        policy = self._policies.get((namespace, bucket))
        if policy is None or policy.rates != rates:
            policy = LeasedTokenBucket(
                hot=self._hot,
                namespace=namespace,
                kind=kind,
                name=name,
                bucket=bucket,
                rates=rates,
            )
            self._policies[namespace, bucket] = policy
        return policy
