"""Services by which the endpoints of a process admit, audit and record calls."""

from collections.abc import Callable

import msgspec

from api.auth.audit import Auditing
from api.auth.authenticator import Authenticator
from api.auth.revalidation import SessionRevalidator
from api.http.responses import AccessLog
from api.observability.metric_buffers import MetricBuffers
from api.observability.tracing import Tracing
from storage.bootstrap import Storage
from storage.settings import Durability


class EndpointServices(msgspec.Struct, frozen=True, kw_only=True):
    """Settings and services that the endpoints of a process share.

    `secure`: this process serves TLS. `public_url`: as in `ServiceContext`.
    """

    authenticator: Authenticator
    revalidator: SessionRevalidator
    auditing: Auditing
    counts: MetricBuffers
    storage: Callable[[], Storage]
    durability: Durability
    region: str
    secure: bool = False
    public_url: str = ""
    tracing: Tracing | None = None
    access: AccessLog | None = None
