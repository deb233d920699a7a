"""Tags of a queue: key-value pairs that its owner chooses."""

from collections.abc import Mapping

from api.aws.sqs.errors import invalid
from storage.domain import limits


def check_tags(tags: Mapping[str, str]) -> None:
    """Raise AwsError unless a queue may have these tags."""
    if len(tags) > limits.TAGS_MAX:
        raise invalid(f"Too many tags: a queue can have at most {limits.TAGS_MAX}.")
    for key, value in tags.items():
        if not 1 <= len(key) <= limits.TAG_KEY_CHARACTERS_MAX or not _is_text(key):
            raise invalid("A tag key must be 1 to 128 characters.")
        if len(value) > limits.TAG_VALUE_CHARACTERS_MAX or not _is_text(value):
            raise invalid("A tag value can have at most 256 characters.")


def _is_text(text: str) -> bool:
    """Return whether the text is printable: letters, numbers, punctuation and spaces.

    Any script is allowed.
    """
    return text.isprintable()
