"""Tags of streams and consumers. One of them is a setting: see `deaggregation`."""

from collections.abc import Mapping, Sequence

from api.aws.kinesis.errors import invalid
from api.aws.kinesis.shapes import Tag
from storage.domain import limits


def with_tags(before: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return the tags with those added. Raises AwsError for too many or invalid tags."""
    together = {**before, **added}
    if len(together) > limits.TAGS_MAX:
        raise invalid(
            f"Failed to add tags to stream: a given resource cannot have more than {limits.TAGS_MAX} tags associated with it."
        )
    for words in together.items():
        if any("\0" in word for word in words):  # Postgres cannot store it
            raise invalid("Some tags contain invalid characters.")
    return together


def without_tags(before: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """Return the tags without those removed; missing keys are ignored."""
    return {key: value for key, value in before.items() if key not in keys}


def tag_list(tags: Mapping[str, str]) -> list[Tag]:
    """Return the tags ordered by key."""
    return [Tag(key, tags[key]) for key in sorted(tags)]
