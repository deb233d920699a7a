"""An AWS service: its operations, and a call of one."""

from collections.abc import Awaitable, Callable, Mapping, Sized
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from api.aws.protocol.codecs.event_stream import EventStream
from api.aws.protocol.errors import AwsError
from api.http.public_url import base_url_of
from api.observability.metric_buffers import ProtocolMetrics
from api.observability.tracing import TraceSpan
from api.types import RequestHeaders
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import MillstreamError, QuotaExceeded

In = TypeVar("In", bound=msgspec.Struct)

_NO_HEADERS: RequestHeaders = {}


class ServiceContext(msgspec.Struct, frozen=True):
    """Context shared by the calls of an endpoint.

    `metrics`: None where nothing is sent or received. `process_state`: state that a service keeps between calls. `guarded`: credentials
    decide on permissions. `secure`: this process serves TLS. `public_url`: the service's address for clients, overriding the
    address in their calls; or "".
    """

    region: str
    metrics: ProtocolMetrics | None
    process_state: Any = None
    guarded: bool = False
    secure: bool = False
    public_url: str = ""


class AwsCall(msgspec.Struct, Generic[In], eq=False):
    """One call of an operation.

    `account`: the only account that its addresses may name; "" in open mode, where any is accepted. `trace`: its span, if
    tracing is enabled. `headers`, `client`: the request's.
    """

    request: In
    storage: Storage
    principal: Principal
    required_action: Action | None
    is_client_connected: Callable[[], bool]
    context: ServiceContext
    account: str = ""
    trace: TraceSpan | None = None
    headers: RequestHeaders = _NO_HEADERS
    client: tuple[str, int] | None = None

    @property
    def action(self) -> Action:
        """The permission that the call requires.

        Raises TypeError for an operation that requires none.
        """
        if self.required_action is None:
            raise TypeError("an operation that everybody may do has nothing to be authorised")
        return self.required_action

    @property
    def address(self) -> str:
        """The address of the service, as in the settings or in the client's request."""
        context = self.context
        return context.public_url or base_url_of(self.headers, secure=context.secure)

    @property
    def region(self) -> str:
        """The configured region of this deployment."""
        return self.context.region

    @property
    def metrics(self) -> ProtocolMetrics:
        """The metrics of this endpoint.

        Raises TypeError at an endpoint where nothing is sent or received.
        """
        if self.context.metrics is None:
            raise TypeError("this endpoint counts neither messages nor records")
        return self.context.metrics

    @property
    def guarded(self) -> bool:
        """Return whether credentials decide on permissions."""
        return self.context.guarded

    @property
    def process_state(self) -> Any:
        """The state that the service keeps between calls, in this process."""
        return self.context.process_state

    async def account_id(self) -> str:
        """Return the caller's account."""
        namespace = await self.storage.catalog.namespaces.find(self.principal.namespace)
        return namespace.account_id

    def authorise(self, resource: str) -> None:
        """Raise Forbidden unless the caller may do this operation on `resource`."""
        self.storage.authorizer.authorise(self.principal, self.action, resource)

    def authorise_list(self) -> None:
        """Raise Forbidden unless the caller may do this operation on some resource."""
        self.storage.authorizer.authorise_list(self.principal, self.action)

    def may_see(self, name: str) -> bool:
        """Return whether a list may show `name` to the caller."""
        return self.principal.policy.allows(self.action, name)


OperationResult = msgspec.Struct | EventStream | None
"""Result of a handler."""

Out = TypeVar("Out", bound=OperationResult)

Handler = Callable[[AwsCall[Any]], Awaitable[OperationResult]]


class Operation(msgspec.Struct, frozen=True):
    """One operation of a service. `action`: None if every authenticated caller may call it."""

    name: str
    handler: Handler
    input_type: type[msgspec.Struct]
    action: Action | None
    decode_json: Callable[[bytes], Any]
    fast_validate: Callable[[Any], bool] | None = None


class QuotaCost(NamedTuple):
    """Quota cost of a call.

    `resource`: as quotas name it, `queue/orders`, or "" for none. `messages`: the number that the call adds to it.
    """

    resource: str
    messages: int = 0

    @classmethod
    def of_items(cls, resource: str, items: Sized | None) -> "QuotaCost":
        """Return the cost of adding items, or the one that the call is itself."""
        return cls(resource, 1 if items is None else len(items))


class Operations:
    """Operations registered by decorator."""

    def __init__(self) -> None:
        self.all: list[Operation] = []

    def add(
        self,
        name: str,
        payload: type[In],
        action: Action | None,
        *,
        fast_validate: Callable[[In], bool] | None = None,
    ) -> Callable[
        [Callable[[AwsCall[In]], Awaitable[Out]]], Callable[[AwsCall[In]], Awaitable[Out]]
    ]:
        """Declare an operation with its input shape and the action it requires, None for none.

        `fast_validate`: a fast check of a large input; if it passes, the check of the constraints is skipped.
        """

        def declare(
            handler: Callable[[AwsCall[In]], Awaitable[Out]],
        ) -> Callable[[AwsCall[In]], Awaitable[Out]]:
            decode = msgspec.json.Decoder(payload).decode
            self.all.append(Operation(name, handler, payload, action, decode, fast_validate))
            return handler

        return declare


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """An AWS service that this deployment emulates.

    `target` begins its X-Amz-Target; `namespace` is its XML's; `translate` converts an engine's errors to the service's, and
    `adapt_error` the errors common to every service. `path_parameter` is the parameter that the path supplies in a Query call that does
    not give it, and `check_address` raises AwsError for a value of it that is no address; `root_operations` are those that a Query call
    can name at the path `/` only. `times`: the members of answers that are times. `quota_cost_of` returns what a call costs, and `throttled` the error
    when a quota is exhausted.
    """

    target: str
    json_type: str
    operations: Mapping[str, Operation]
    translate: Callable[[MillstreamError], AwsError]
    quota_cost_of: Callable[[Operation, Any], QuotaCost]
    throttled: Callable[[Operation, QuotaExceeded], AwsError]
    namespace: str = ""
    path_parameter: str = ""
    check_address: Callable[[str], None] = lambda _: None
    root_operations: frozenset[str] = frozenset()
    adapt_error: Callable[[AwsError], AwsError] = lambda error: error
    times: frozenset[str] = frozenset()


def operations_by_name(*groups: Operations) -> Mapping[str, Operation]:
    """Return the operations of several modules by name."""
    return {operation.name: operation for group in groups for operation in group.all}
