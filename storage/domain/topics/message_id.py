"""Id of a published message: its place in the topic's log."""

import re

import msgspec

from storage.domain.errors import ValidationFailed
from storage.domain.names import LogId

_TEXT = re.compile(r"([0-9a-f]{16})-(0|[1-9][0-9]{0,8})-(0|[1-9][0-9]{0,15})")


class TopicMessageId(msgspec.Struct, frozen=True, gc=False):
    """Stream, shard and offset of a published message; as text, `<stream>-<shard>-<offset>`."""

    stream_id: LogId
    shard: int
    offset: int

    def __str__(self) -> str:
        return f"{self.stream_id}-{self.shard}-{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "TopicMessageId":
        """Parse the text of an id. Raises ValidationFailed."""
        parts = _TEXT.fullmatch(text)
        if parts is None:
            detail = "The id of a published message is '<stream>-<shard>-<offset>'"
            raise ValidationFailed.at("/message", detail, "invalid_id")
        stream_id, shard, offset = parts.groups()
        return cls(stream_id, int(shard), int(offset))
