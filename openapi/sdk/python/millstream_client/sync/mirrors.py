# Generated from aio/mirrors.py by `make sdk`; changes are lost.
"""Mirrors: configuration, progress, promotion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream_client.core.api.mirrors.delete_mirror import delete_mirror
from millstream_client.core.api.mirrors.get_mirror import get_mirror
from millstream_client.core.api.mirrors.get_mirror_stats import get_mirror_stats
from millstream_client.core.api.mirrors.pause_mirror import pause_mirror
from millstream_client.core.api.mirrors.promote_mirror import promote_mirror
from millstream_client.core.api.mirrors.put_mirror import put_mirror
from millstream_client.core.api.mirrors.resume_mirror import resume_mirror
from millstream_client.core.models.mirror_config import MirrorConfig
from millstream_client.core.models.mirror_from import MirrorFrom
from millstream_client.core.models.mirror_stored import MirrorStored
from millstream_client.core.models.promotion_in import PromotionIn
from millstream_client.sync.definitions import create
from millstream_client.sync.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream_client.calls import Call
    from millstream_client.core.models.mirror_out import MirrorOut
    from millstream_client.core.models.mirror_promotion import MirrorPromotion
    from millstream_client.core.models.mirror_stats import MirrorStats


class Mirror(Resource):
    """A mirror of another deployment's streams and queues, whether it exists or not.

    Raises MillstreamError.
    """

    def create(
        self,
        url: str,
        streams: Iterable[str] = (),
        *,
        queues: Iterable[str] = (),
        key: str | None = None,
        groups: bool | None = None,
        follow_definitions: bool | None = None,
        only_new: bool = False,
    ) -> MirrorStored:
        """Create the mirror. If it exists with these settings, return it, with `created` False.

        `url` is the address of the other deployment, `key` one of its API keys, `streams` and `queues` are names
        with `*` for anything; with `groups`, which is the default, the consumer groups of streams are moved as well. Settings that you leave out are not compared. Raises AlreadyExists, which names the settings that differ; with
        `only_new`, whenever it exists.
        """
        settings = {"groups": groups, "follow_definitions": follow_definitions}
        call = self._put(url, (streams, queues), key, settings, if_none_match="*")
        return create(self.transport, call, MirrorStored.from_dict, only_new=only_new)

    def apply(
        self,
        url: str,
        streams: Iterable[str] = (),
        *,
        queues: Iterable[str] = (),
        key: str | None = None,
        groups: bool | None = None,
        follow_definitions: bool | None = None,
        dry_run: bool = False,
    ) -> MirrorStored:
        """Create the mirror, or replace its configuration; `changes` has the fields that differed.

        Settings that you leave out take their defaults; the key stays. With `dry_run`, nothing is stored.
        """
        settings = {"groups": groups, "follow_definitions": follow_definitions}
        call = self._put(url, (streams, queues), key, settings, dry_run=dry_run)
        return self.transport.call(call)

    def _put(
        self,
        url: str,
        names: tuple[Iterable[str], Iterable[str]],
        key: str | None,
        settings: dict[str, bool | None],
        **conditions: Any,
    ) -> Call[MirrorStored]:
        origin = {"url": url} | ({} if key is None else {"key": key})
        streams, queues = map(list, names)
        body: dict[str, Any] = {"from": origin, "streams": streams}
        if queues:
            body["queues"] = queues
        body |= {name: value for name, value in settings.items() if value is not None}
        call = put_mirror(self.name, body=MirrorConfig(MirrorFrom(url)), **conditions)
        return replace(call, json=body)

    def config(self) -> MirrorOut:
        """Return the configuration, without the key."""
        return self.transport.call(get_mirror(self.name))

    def stats(self) -> MirrorStats:
        """Return how far the mirror is, by stream and shard, its groups and queues."""
        return self.transport.call(get_mirror_stats(self.name))

    def pause(self) -> MirrorOut:
        """Pause the mirror: it copies nothing until it is resumed."""
        return self.transport.call(pause_mirror(self.name))

    def resume(self) -> MirrorOut:
        """Resume the mirror where it was."""
        return self.transport.call(resume_mirror(self.name))

    def promote(
        self, *, fence: bool = True, wait_seconds: float = 20, force: bool = False
    ) -> MirrorPromotion:
        """Stop the mirror permanently: its copies are independent of the other deployment.

        If that can be reached, its streams and queues are made read-only first, unless `fence` is False, and the last records are
        copied. If these take longer than `wait_seconds`, the mirror is not promoted, and `promoted_at` is None, unless with
        `force`: call again. `origin` says what became of the other deployment.
        """
        body = PromotionIn(fence=fence, wait_seconds=wait_seconds, force=force)
        return self.transport.call(promote_mirror(self.name, body=body))

    def delete(self) -> None:
        """Delete the mirror; its streams stay."""
        self.transport.call(delete_mirror(self.name))
