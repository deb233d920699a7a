"""Credentials engine: permissions, who may grant them, and credential life cycle.

No caller grants permissions that it does not have: they are compared with the caller's at creation, at every change,
and at a rotation, whose new secret has all permissions of the old one. Credentials that are `everywhere` are visible to,
and changed by, administrators everywhere alone.

A change is committed with its announcement, which every process receives (`storage.postgres.listener`): from then on
no call of that credential passes, and the callbacks of `on_change` have run.
docs/internals/security-model.md explains what bounds a revocation when something fails.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from msgspec.structs import replace

from storage.access.authorization import Authorizer
from storage.access.credential_cache import CredentialCache
from storage.access.secret_box import SecretBox
from storage.access.sessions import NewSession, SessionStore
from storage.concurrency.tasks import finally_call
from storage.domain import limits
from storage.domain.access.credentials import (
    Credential,
    CredentialKind,
    CredentialRequest,
    IssuedCredential,
    NewSecret,
    Rights,
    could_be_id,
    covers_rates,
    digest_of,
    new_secret,
)
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Action, Principal, Role
from storage.domain.clock import Clock
from storage.domain.definitions import check_version, could_be_name, next_version, page_limit
from storage.domain.errors import (
    Forbidden,
    InvalidCursor,
    KeyNotFound,
    KeyRefused,
    ValidationFailed,
)
from storage.domain.names import DEFAULT_NAMESPACE
from storage.postgres.database import Database
from storage.postgres.listener import Listener
from storage.postgres.repositories.credentials import (
    CHANNEL,
    CredentialRows,
    LockedFamily,
    Place,
    StoredCredential,
    announced_new,
)
from storage.postgres.repositories.sessions import announced_session

FIRST = "first-administrator"
"""Name of a deployment's first key."""

OnChange = Callable[[str | None], None]
"""Called with the id of a credential that changed or ended; None when any may have."""


class Credentials:
    """API keys, access key pairs, tickets and sessions.

    Every method that waits raises StorageUnavailable or StorageBusy; one that changes something, OutcomeUnknown.
    `by` is the caller; a credential that it may not manage is not found.
    """

    def __init__(
        self, database: Database, listener: Listener, clock: Clock, box: SecretBox
    ) -> None:
        self._rows = CredentialRows(database)
        self._clock = clock
        self._box = box
        self._access = Authorizer()
        self._cache = CredentialCache(self._rows, listener, clock, box)
        self.cached = self._cache.cached
        """Return the credential of an id if it is cached in this process, and live."""
        self.entry = self._cache.entry
        """Return this process's cache entry of an id, or None; the entry has its own expiry."""
        self.keep_warm = self._cache.keep_warm
        """Keep every credential that may be live cached, until cancelled."""
        self.used = self._cache.used
        """Record that the credential of an id authenticated a caller now; written later."""
        self._sessions = SessionStore(database, self._cache, listener, clock)
        self._watchers: list[OnChange] = []
        listener.subscribe(CHANNEL, self._on_announced, self._on_lost)

    # Authentication

    async def find(self, credential_id: str) -> Credential | None:
        """Return the credential if it is live.

        At most 30 s old, even if announcements were missed. Raises SecretUnreadable.
        """
        return await self._cache.find(credential_id)

    async def authenticate(self, token: str) -> Credential | None:
        """Return the live API key that this token is."""
        return await self._cache.authenticate(token)

    def on_change(self, callback: OnChange) -> None:
        """Call `callback` with the id of each credential that changes or ends.

        With None when any may have.
        """
        self._watchers.append(callback)

    async def make_ticket(self, by: Principal) -> tuple[str, int] | None:
        """Return a ticket with the permissions of `by`, and its expiry.

        None if the caller's credential no longer exists.
        """
        return await self._sessions.make_ticket(by)

    async def redeem_ticket(self, token: str) -> Credential | None:
        """Return the credential that requested the ticket, the first time it is redeemed."""
        return await self._sessions.redeem_ticket(token)

    async def log_in(self, token: str) -> NewSession | None:
        """Start a session for this API key; None if it is not a live key."""
        return await self._sessions.log_in(token)

    async def find_session(self, token: str) -> Credential | None:
        """Return the API key that logged in, until the session ends."""
        return await self._sessions.find_session(token)

    async def log_out(self, token: str) -> None:
        """End the session, if it exists."""
        await self._sessions.log_out(token)

    async def flush_uses(self) -> None:
        """Write when credentials and sessions were last used, as recorded in this process."""
        await self._cache.flush_uses()
        await self._sessions.flush_uses()

    # Management

    async def create(
        self, by: Principal, request: CredentialRequest
    ) -> tuple[IssuedCredential, NewSecret]:
        """Create a credential in the namespace of `by`; return it, and its secret.

        The secret cannot be shown again. Raises ValidationFailed, Forbidden when it would have more permissions than `by`,
        NamespaceNotFound, KeyRefused when the namespace has as many as it may, and SecretsOff: an access key pair's secret has to
        be stored.
        """
        issued, secret = self._new(by, request)
        await self._rows.insert(self._stored(issued, secret), issued.created_at_ms)
        return issued, secret

    async def create_first(self) -> NewSecret | None:
        """Create an API key of an administrator everywhere, or None if there ever was one."""
        request = CredentialRequest(
            name=FIRST, rights=Rights(roles=(Role.ADMIN,)), all_namespaces=True
        )
        issued, secret = self._new(LOCAL_ADMINISTRATOR, request)
        made = await self._rows.insert(
            self._stored(issued, secret), issued.created_at_ms, only_first=True
        )
        return secret if made else None

    def _new(self, by: Principal, request: CredentialRequest) -> tuple[IssuedCredential, NewSecret]:
        now_ms = self._clock.now_ms()
        request.check(now_ms)
        self._access.authorise(by, Action.ADMIN_KEYS, f"{by.namespace}/{request.name}")
        _check_gives(by, request.rights, request.all_namespaces)
        secret = new_secret(request.kind)
        issued = IssuedCredential(
            id=secret.id,
            kind=secret.kind,
            name=request.name,
            namespace=DEFAULT_NAMESPACE if request.all_namespaces else by.namespace,
            all_namespaces=request.all_namespaces,
            rights=request.rights,
            family=secret.id,
            created_at_ms=now_ms,
            changed_at_ms=now_ms,
            created_by=by.name,
        )
        return issued, secret

    async def get(self, by: Principal, credential_id: str) -> IssuedCredential:
        """Return one credential, also if it has ended.

        Raises KeyNotFound.
        """
        credential = await self._rows.find(credential_id) if could_be_id(credential_id) else None
        return self._visible(by, credential)

    async def page(
        self,
        by: Principal,
        *,
        name: str | None = None,
        after: Place | None = None,
        limit: int = limits.PAGE_ITEMS_DEFAULT,
    ) -> tuple[list[IssuedCredential], Place | None]:
        """Return credentials that `by` may manage, by name, and where the next page begins.

        Includes ended ones. The next page is None at the end; a page may be shorter than `limit` and not be the last. Raises
        Forbidden, InvalidCursor.
        """
        self._access.authorise_list(by, Action.ADMIN_KEYS)
        if not all(could_be_name(token) for token in (name or "", *(after or ()))):
            raise InvalidCursor
        limit = page_limit(limit)
        credentials = await self._rows.page(
            by.namespace, all_namespaces=by.all_namespaces, name=name, after=after, limit=limit
        )
        rest = (credentials[-1].name, credentials[-1].id) if len(credentials) == limit else None
        return [one for one in credentials if _may_manage(by, one)], rest

    async def change(
        self,
        by: Principal,
        credential_id: str,
        change: Callable[[Rights], Rights],
        *,
        if_match: int | None = None,
    ) -> IssuedCredential:
        """Replace the rights by the result of `change`, atomically.

        The rights of other credentials of its family stay. Raises KeyNotFound, KeyRefused when it has ended,
        PreconditionFailed, ValidationFailed, and Forbidden when it has, or would have, more rights than `by`.
        """
        now_ms = self._clock.now_ms()
        with finally_call(self._changed, credential_id):
            async with self._family(by, credential_id) as (family, credential):
                check_version(credential, if_match)
                _check_live(credential, now_ms)
                _check_gives(by, credential.rights, credential.all_namespaces)
                rights = change(credential.rights)
                if rights == credential.rights:
                    return credential
                rights.check(now_ms)
                _check_gives(by, rights, credential.all_namespaces)
                changed = next_version(credential, now_ms, rights=rights)
                await family.update(changed)
                return changed

    async def revoke(
        self, by: Principal, credential_id: str, *, if_match: int | None = None
    ) -> IssuedCredential:
        """Revoke a credential permanently; a revoked one stays as it is.

        A caller that may manage keys of its name may revoke it, even one with more rights than its own. Raises KeyNotFound,
        PreconditionFailed.
        """
        now_ms = self._clock.now_ms()
        with finally_call(self._changed, credential_id):
            async with self._family(by, credential_id) as (family, credential):
                check_version(credential, if_match)
                if credential.revoked_at_ms is not None:
                    return credential
                revoked = next_version(credential, now_ms, revoked_at_ms=now_ms)
                await family.update(revoked)
                return revoked

    async def rotate(
        self,
        by: Principal,
        credential_id: str,
        overlap_ms: int = limits.CREDENTIAL_OVERLAP_MS_DEFAULT,
    ) -> tuple[IssuedCredential, NewSecret]:
        """Create a successor of the same name and rights; return it, and its secret.

        The first one ends after `overlap_ms`, or sooner. One that would have expired is followed by one with the same lifetime.
        Raises KeyNotFound, KeyRefused when it has ended or two of its family would not be enough, ValidationFailed, SecretsOff,
        and Forbidden when it has more rights than `by`.
        """
        if not 0 <= overlap_ms <= limits.CREDENTIAL_OVERLAP_MS_MAX:
            most = limits.CREDENTIAL_OVERLAP_MS_MAX // limits.SECOND_MS
            raise ValidationFailed.at("/overlap_seconds", f"must be 0 to {most}", "out_of_range")
        now_ms = self._clock.now_ms()
        with finally_call(self._changed, credential_id):
            async with self._family(by, credential_id) as (family, credential):
                _check_live(credential, now_ms)
                _check_gives(by, credential.rights, credential.all_namespaces)
                ending = _ending(credential, now_ms, overlap_ms)
                _check_live_limit(family, ending, now_ms)
                secret = new_secret(credential.kind)
                made = _successor(credential, secret, now_ms, by)
                await family.update(ending)
                await family.insert(self._stored(made, secret))
                return made, secret

    @asynccontextmanager
    async def _family(
        self, by: Principal, credential_id: str
    ) -> AsyncGenerator[tuple[LockedFamily, IssuedCredential]]:
        """Lock a credential that `by` may manage, with its family, until the block ends."""
        if not could_be_id(credential_id):
            raise KeyNotFound
        async with self._rows.family_of(credential_id) as family:
            if family is None:
                raise KeyNotFound
            yield family, self._visible(by, family.member(credential_id))

    def _visible(self, by: Principal, credential: IssuedCredential | None) -> IssuedCredential:
        self._access.authorise_list(by, Action.ADMIN_KEYS)
        if credential is None or not _may_manage(by, credential):
            raise KeyNotFound
        return credential

    def _stored(self, issued: IssuedCredential, secret: NewSecret) -> StoredCredential:
        if issued.kind is CredentialKind.PAIR:
            return StoredCredential(
                issued, sealed=self._box.encrypt(secret.secret.encode(), issued.id)
            )
        return StoredCredential(issued, digest=digest_of(secret.secret))

    # Announcements

    def _on_announced(self, payload: str) -> None:
        if (digest := announced_session(payload)) is not None:
            self._sessions.invalidate(digest)
        elif (new_id := announced_new(payload)) is not None:
            self._cache.note_new(new_id)
        else:
            self._changed(payload)

    def _changed(self, credential_id: str) -> None:
        self._cache.invalidate(credential_id)
        self._notify(credential_id)

    def _on_lost(self) -> None:
        self._cache.invalidate_all()
        self._sessions.invalidate_all()
        self._notify(None)

    def _notify(self, credential_id: str | None) -> None:
        for watcher in self._watchers:
            watcher(credential_id)

    async def close(self) -> None:
        """Stop the work in progress, and write when credentials were last used."""
        await self._sessions.close()
        await self._cache.close()


def _may_manage(by: Principal, credential: IssuedCredential) -> bool:
    reaches = (
        by.all_namespaces if credential.all_namespaces else credential.namespace == by.namespace
    )
    return reaches and by.policy.allows(Action.ADMIN_KEYS, credential.name)


def _check_gives(by: Principal, rights: Rights, everywhere: bool) -> None:
    """Raise Forbidden unless `by` has all of these rights."""
    if everywhere and not by.all_namespaces:
        raise Forbidden(f"'{by.name}' is not an administrator of all namespaces.")
    if not by.policy.covers(rights.expanded) or not covers_rates(by.rates, rights.rates):
        raise Forbidden(f"'{by.name}' does not have all permissions of this key.")


def _check_live(credential: IssuedCredential, now_ms: int) -> None:
    if credential.revoked_at_ms is not None:
        raise KeyRefused("The key is revoked.")
    if not credential.is_live(now_ms):
        raise KeyRefused("The key has expired.")


def _check_live_limit(family: LockedFamily, ending: IssuedCredential, now_ms: int) -> None:
    """Raise KeyRefused unless one more may be live beside the live ones and the ending one."""
    others = [one.issued for one in family.members if one.issued.id != ending.id]
    live = sum(one.is_live(now_ms) for one in (*others, ending))
    if live >= limits.CREDENTIALS_LIVE_MAX:
        raise KeyRefused(
            "This key and the key it replaced are both active. Revoke one of them first."
        )


def _ending(credential: IssuedCredential, now_ms: int, overlap_ms: int) -> IssuedCredential:
    until_ms = now_ms + overlap_ms
    sooner_ms = min(credential.rights.expires_at_ms or until_ms, until_ms)
    return next_version(
        credential, now_ms, rights=replace(credential.rights, expires_at_ms=sooner_ms)
    )


def _successor(
    credential: IssuedCredential, secret: NewSecret, now_ms: int, by: Principal
) -> IssuedCredential:
    expires_at_ms = credential.rights.expires_at_ms
    if expires_at_ms is not None:
        expires_at_ms += now_ms - credential.created_at_ms
    return replace(
        credential,
        id=secret.id,
        rights=replace(credential.rights, expires_at_ms=expires_at_ms),
        version=1,
        created_at_ms=now_ms,
        changed_at_ms=now_ms,
        created_by=by.name,
        last_used_at_ms=None,
    )
