"""A service as its door knows it: its operations, and one call of them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from api.aws.protocol.codecs.event_stream import EventStream
from api.aws.protocol.errors import AwsError
from api.observability.metric_definitions import DoorMetrics
from api.observability.tracing import Trace
from api.types import RequestHeaders
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import MillstreamError, QuotaExceeded

In = TypeVar("In", bound=msgspec.Struct)

_NO_HEADERS: RequestHeaders = {}


class Surroundings(msgspec.Struct, frozen=True):
    """What a door's calls share. `metrics`: None where nothing is sent or received. `kept`: what a service remembers
    between them. `guarded`: credentials decide. `secure`: this process speaks TLS. `public_url`: where clients reach the
    service, whatever their calls say; or ""."""

    region: str
    metrics: DoorMetrics | None
    kept: Any = None
    guarded: bool = False
    secure: bool = False
    public_url: str = ""


class Call(Generic[In]):
    """One request, as an operation sees it. `address` is the service's, as this client wrote it or as the settings have it.

    `account`: the only one that its addresses may name; "" in open mode, where any does. `trace`: its span, where
    somebody collects them. `headers`: the request's.
    """

    __slots__ = (
        "_action",
        "_around",
        "account",
        "address",
        "asked",
        "client_is_there",
        "headers",
        "principal",
        "storage",
        "trace",
    )

    def __init__(
        self,
        asked: In,
        storage: Storage,
        principal: Principal,
        action: Action | None,
        address: str,
        client_is_there: Callable[[], bool],
        around: Surroundings,
        account: str = "",
        trace: Trace | None = None,
        headers: RequestHeaders = _NO_HEADERS,
    ) -> None:
        self.asked = asked
        self.storage = storage
        self.principal = principal
        self._action = action
        self.address = address
        self.client_is_there = client_is_there
        self._around = around
        self.account = account
        self.trace = trace
        self.headers = headers

    @property
    def action(self) -> Action:
        """What it takes to do this. Raises TypeError for an operation of everybody's."""
        if self._action is None:
            raise TypeError("an operation that everybody may do has nothing to be authorised")
        return self._action

    @property
    def region(self) -> str:
        """The region that this deployment says it is in."""
        return self._around.region

    @property
    def metrics(self) -> DoorMetrics:
        """What this door counts. Raises TypeError at a door where nothing is sent or received."""
        if self._around.metrics is None:
            raise TypeError("this door counts neither messages nor records")
        return self._around.metrics

    @property
    def guarded(self) -> bool:
        """Whether credentials say who may do what."""
        return self._around.guarded

    @property
    def kept(self) -> Any:
        """What the service remembers between calls, in this process."""
        return self._around.kept

    async def account_id(self) -> str:
        """The caller's account."""
        found = await self.storage.catalog.namespaces.find(self.principal.namespace)
        return found.account_id

    def authorise(self, resource: str) -> None:
        """Raise Forbidden unless the caller may do this operation on `resource`."""
        self.storage.access.authorise(self.principal, self.action, resource)

    def authorise_list(self) -> None:
        """Raise Forbidden unless the caller may do this operation on some resource."""
        self.storage.access.authorise_list(self.principal, self.action)

    def may_see(self, name: str) -> bool:
        """Whether a list that the caller asks for tells it of `name`."""
        return self.principal.policy.allows(self.action, name)


Told = msgspec.Struct | EventStream | None
"""What a handler answers."""

Out = TypeVar("Out", bound=Told)

Handler = Callable[[Call[Any]], Awaitable[Told]]


class Operation(msgspec.Struct, frozen=True):
    """One operation, and everything that is known of it. `action`: None where whoever is let in may do it."""

    name: str
    handler: Handler
    asked: type[msgspec.Struct]
    action: Action | None
    decode_json: Callable[[bytes], Any]
    looks_right: Callable[[Any], bool] | None = None


class Load(NamedTuple):
    """What a call is about, as quotas name it, `queue/orders` or '' for nothing; and what it adds there."""

    resource: str
    messages: int = 0


class Operations:
    """Operations, collected by decoration."""

    def __init__(self) -> None:
        self.all: list[Operation] = []

    def add(
        self,
        name: str,
        asked: type[In],
        action: Action | None,
        *,
        looks_right: Callable[[In], bool] | None = None,
    ) -> Callable[[Callable[[Call[In]], Awaitable[Out]]], Callable[[Call[In]], Awaitable[Out]]]:
        """Declare an operation that reads `asked` and needs the right to `action`; with None, none.

        `looks_right`: a quick look at a large input, which spares it the check of its constraints.
        """

        def declare(
            handler: Callable[[Call[In]], Awaitable[Out]],
        ) -> Callable[[Call[In]], Awaitable[Out]]:
            decode = msgspec.json.Decoder(asked).decode
            self.all.append(Operation(name, handler, asked, action, decode, looks_right))
            return handler

        return declare


class Service:
    """A service of Amazon's that this deployment stands for.

    `target` begins its X-Amz-Target; `namespace` is its XML's; `translate` tells an engine's errors in its
    words, and `spell` those that every service has. `place_name` is the parameter for which the path stands in
    a Query call that does not give it. `times`: the members of answers that are times. `load_of` tells what a call
    costs, and `throttled` what is said when a quota has no room for it.
    """

    def __init__(
        self,
        *,
        target: str,
        json_type: str,
        namespace: str = "",
        place_name: str = "",
        operations: Iterable[Operations],
        translate: Callable[[MillstreamError], AwsError],
        spell: Callable[[AwsError], AwsError] = lambda error: error,
        times: Iterable[str] = (),
        load_of: Callable[[Operation, Any], Load],
        throttled: Callable[[Operation, QuotaExceeded], AwsError],
    ) -> None:
        self.load_of = load_of
        self.throttled = throttled
        self.target = target
        self.json_type = json_type
        self.namespace = namespace
        self.place_name = place_name
        self.translate = translate
        self.spell = spell
        self.times = frozenset(times)
        self.operations: Mapping[str, Operation] = {
            one.name: one for some in operations for one in some.all
        }
