"""Address of a log in the hot store."""

import msgspec

from storage.domain.names import LogId


class LogAddress(msgspec.Struct, frozen=True, gc=False):
    """Address of a log; a queue's stream view is stored next to its log."""

    namespace: str
    log_id: LogId
    is_view: bool = False

    @property
    def channel(self) -> str:
        """Name by which its readers are woken."""
        return f"{self.log_id}:view" if self.is_view else self.log_id
