"""Translation of errors of streams into those of the topics that they are."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from storage.domain.errors import StreamNotFound, TopicNotFound
from storage.domain.names import TopicName


@asynccontextmanager
async def of_topic(name: TopicName) -> AsyncGenerator[None]:
    """Raise TopicNotFound where the block raises StreamNotFound."""
    try:
        yield
    except StreamNotFound:
        raise no_topic(name) from None


def no_topic(name: TopicName) -> TopicNotFound:
    """Return the error of a topic that does not exist."""
    return TopicNotFound(f"{described(name)} does not exist.")


def described(name: TopicName) -> str:
    """Return the topic, or the stream that it stands for, as a subject of a sentence."""
    stream = name.stream
    return f"Stream '{stream.name}'" if name.is_of_stream else f"Topic '{name.name}'"
