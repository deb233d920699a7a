# Generated from aio/replays.py by `make sdk`; changes are lost.
"""Replays of stream records to another stream or to a queue."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from millstream_client.core.api.replays.cancel_replay import cancel_replay
from millstream_client.core.api.replays.get_replay import get_replay
from millstream_client.core.api.replays.pause_replay import pause_replay
from millstream_client.core.api.replays.resume_replay import resume_replay
from millstream_client.core.api.replays.retry_replay import retry_replay
from millstream_client.core.api.replays.start_replay import start_replay
from millstream_client.core.models.plan_out import PlanOut
from millstream_client.core.models.replay_config import ReplayConfig
from millstream_client.core.models.replay_out import ReplayOut
from millstream_client.core.models.target_config import TargetConfig
from millstream_client.sync.resources import Resource

if TYPE_CHECKING:
    from millstream_client.core.models.replay_detail import ReplayDetail
    from millstream_client.core.params import ReplayConfigParams, TargetConfigParams
    from millstream_client.sync.transport import Transport

OVER = frozenset({"done", "failed", "cancelled"})
LOOK_S = 0.5


class Replay(Resource):
    """A replay, whether it exists or not. Raises MillstreamError."""

    def status(self) -> ReplayDetail:
        """Return the progress, by shard."""
        return self.transport.call(get_replay(self.name))

    def watch(self, every_seconds: float = LOOK_S) -> Iterator[ReplayDetail]:
        """Yield the progress repeatedly until the replay has ended."""
        while True:
            status = self.status()
            yield status
            if str(status.state) in OVER:
                return
            self.transport.sleep(every_seconds)

    def pause(self) -> ReplayOut:
        """Pause the replay."""
        return self.transport.call(pause_replay(self.name))

    def resume(self) -> ReplayOut:
        """Resume the replay."""
        return self.transport.call(resume_replay(self.name))

    def cancel(self) -> ReplayOut:
        """Cancel the replay; records already sent are kept."""
        return self.transport.call(cancel_replay(self.name))

    def retry(self) -> ReplayOut:
        """Retry a failed replay from its current position."""
        return self.transport.call(retry_replay(self.name))


class Replays:
    """Access to replays.

    Fields have the names of the REST API: `filter`, `order`, `pacing`, …
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def start(
        self,
        stream: str,
        target: TargetConfigParams,
        *,
        id: str | None = None,
        **config: Unpack[ReplayConfigParams],
    ) -> Replay:
        """Start a replay to `target`, {"stream": …} or {"queue": …}.

        With an `id`, repeated calls start it only once.
        """
        asked = {"id": id or f"replay-{uuid.uuid4().hex[:16]}"}
        started = self._ask({**asked, "stream": stream, "target": dict(target), **config})
        assert isinstance(started, ReplayOut), "that is the answer unless a dry run was asked for"
        return Replay(self.transport, started.id)

    def plan(
        self, stream: str, target: TargetConfigParams, **config: Unpack[ReplayConfigParams]
    ) -> PlanOut:
        """Return what a replay would do, without starting it."""
        planned = self._ask({"dry_run": True, "stream": stream, "target": dict(target), **config})
        assert isinstance(planned, PlanOut), "that is the answer to a dry run"
        return planned

    def _ask(self, asked: dict[str, Any]) -> ReplayOut | PlanOut:
        said = {
            name.rstrip("_"): value for name, value in asked.items()
        }  # `from_` is Python's `from`
        call = start_replay(body=ReplayConfig(stream="", target=TargetConfig()))
        return self.transport.call(replace(call, json=said))
