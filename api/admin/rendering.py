"""Page rendering: templates, their filters and globals, and the response headers of pages."""

import gzip
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple, cast
from urllib.parse import urlencode

from fastapi import Depends, Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from api.admin import display_formats
from api.admin.assets import accepts_gzip, address_of
from api.admin.browsing.body_preview import escape_misleading, summary
from api.admin.match_text import compact_json, indented_json
from api.admin.queue_snippets import ServiceAccess
from api.admin.sparklines import sparkline
from api.config.durations import DURATION_PATTERN
from api.http.public_url import base_url_of
from api.native.dependencies import PRINCIPAL_KEY, PrincipalDep, StorageDep, principal_of
from api.native.fields import rfc3339
from api.nouns import NOUNS, DashboardPage, NounDeclaration
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.clock import SystemClock
from storage.domain.names import DEFAULT_NAMESPACE

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "vary": "accept-encoding",
}
"""Headers of every page."""

_OF_A_FILE = {**HEADERS, "content-security-policy": "default-src 'none'; sandbox"}

_PACKED_BYTES_MIN = 1024  # below it a packed page is no smaller on the wire
_CLOCK = SystemClock()


class Tab(NamedTuple):
    """One of several pages about the same thing."""

    key: str
    label: str
    path: str
    holds: int | None = None


class Frame(NamedTuple):
    """Request context of every template."""

    principal: Principal | None
    path: str
    query: str
    guarded: bool
    version: str
    base: str

    @property
    def namespace(self) -> str:
        """Namespace of the caller."""
        return self.principal.namespace if self.principal else DEFAULT_NAMESPACE

    @property
    def service(self) -> ServiceAccess:
        """Connection parameters of the caller, for programs."""
        principal = self.principal
        elsewhere = principal is not None and principal.all_namespaces
        is_named = elsewhere and self.namespace != DEFAULT_NAMESPACE
        return ServiceAccess(self.base, self.namespace if is_named else None, self.guarded)

    @property
    def nouns(self) -> list[NounDeclaration]:
        """The nouns in the navigation of the caller."""
        return nouns_for(self.principal) if self.principal else []

    @property
    def url(self) -> str:
        """URL of the page, to be requested again."""
        return f"{self.path}?{self.query}" if self.query else self.path

    def link(self, path: str, **parameters: object) -> str:
        """Return a URL of the dashboard in the same namespace, without empty or None parameters."""
        present = {name: value for name, value in parameters.items() if value not in (None, "", ())}
        if self.principal and self.principal.all_namespaces and self.namespace != DEFAULT_NAMESPACE:
            present.setdefault("ns", self.namespace)
        return f"{path}?{urlencode(present, doseq=True)}" if present else path

    def may(self, action: str, name: str = "*") -> bool:
        """Return whether the caller may do this, so that a page offers only permitted actions."""
        if self.principal is None:
            return False
        permission = Action(action)
        if name == "*":
            return self.principal.policy.allows_any_name(permission)
        return self.principal.policy.allows(permission, name)


def nouns_for(principal: Principal) -> list[NounDeclaration]:
    """Return the nouns of which the caller may see the page."""
    return [noun for noun in NOUNS if noun.page and _may_see(principal, noun.page)]


def _may_see(principal: Principal, page: DashboardPage) -> bool:
    if page.needs_all_namespaces and not principal.all_namespaces:
        return False
    return not page.action or principal.policy.allows_any_name(Action(page.action))


@cache
def environment() -> Environment:
    """Return the environment of the templates. All output is escaped."""
    made = Environment(
        loader=PackageLoader("api.admin"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        count=display_formats.count,
        rate=display_formats.rate,
        size=display_formats.size,
        duration=display_formats.format_duration,
        plural=display_formats.plural,
        typed_duration=display_formats.typed_duration,
        rfc3339=rfc3339,
        spark=sparkline,
        headertext=summary,
        shown_text=escape_misleading,
        compact_json=compact_json,
        indented_json=indented_json,
    )
    made.globals.update(
        asset=address_of,
        percent=display_formats.percent,
        nothing=display_formats.NOTHING,
        duration_pattern=DURATION_PATTERN,
        icon_of={noun.name: noun.icon for noun in NOUNS},
    )
    return made


def render(
    request: Request, template: str, status_code: int = 200, *, live: bool = False, **values: Any
) -> Response:
    """Render a page. `live`: its content changes, so it is reloaded while it is visible."""
    frame = _frame(request)
    html = (
        environment()
        .get_template(template)
        .render(
            frame=frame,
            link=frame.link,
            may=frame.may,
            live=live,
            now_ms=_CLOCK.now_ms(),
            **values,
        )
    )
    return _response(request, html.encode(), status_code)


def _frame(request: Request) -> Frame:
    authenticated = request.scope.get(PRINCIPAL_KEY) is not None
    state: Mapping[str, Any] = request.app.state._state
    return Frame(
        principal_of(request) if authenticated else None,
        request.url.path,
        request.url.query,
        cast(bool, state.get("guarded", False)),
        request.app.version,
        state["settings"].public_url
        or base_url_of(dict(request.scope["headers"]), secure=request.url.scheme == "https"),
    )


class PageContext(NamedTuple):
    """Request of a page, the storage, and the caller."""

    request: Request
    storage: Storage
    principal: Principal

    @property
    def namespace(self) -> str:
        """Namespace of the caller."""
        return self.principal.namespace

    @property
    def service(self) -> ServiceAccess:
        """Connection parameters of the caller, for programs."""
        return _frame(self.request).service

    def may(self, action: Action, name: str) -> bool:
        """Return whether the caller may do this to the object."""
        return self.principal.policy.allows(action, name)

    def link(self, path: str) -> str:
        """Return a URL of the dashboard in the same namespace."""
        return _frame(self.request).link(path)

    def render(self, template: str, *, live: bool = False, **values: Any) -> Response:
        """Render a page. `live`: its content changes, so it is reloaded while it is visible."""
        return render(self.request, template, live=live, **values)


def _context(request: Request, storage: StorageDep, principal: PrincipalDep) -> PageContext:
    return PageContext(request, storage, principal)


Context = Annotated[PageContext, Depends(_context)]


def as_file(body: bytes, name: str) -> Response:
    """Return untrusted bytes as a download of this name: never shown by a browser."""
    disposition = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(body, headers=_OF_A_FILE | disposition, media_type="application/octet-stream")


def _response(request: Request, body: bytes, status: int) -> Response:
    headers = dict(HEADERS)
    if len(body) >= _PACKED_BYTES_MIN and accepts_gzip(request):
        body = gzip.compress(body, 5, mtime=0)
        headers["content-encoding"] = "gzip"
    return Response(body, status, headers, media_type="text/html; charset=utf-8")
