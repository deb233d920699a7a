"""Tags of a queue: key-value pairs that its owner chooses."""

from collections.abc import Mapping

from api.aws.protocol.reserved_tags import RESERVED_TAG, is_reserved
from api.aws.sqs.errors import invalid
from storage.domain import limits


def with_tags(queue: str, before: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return a queue's tags with those added. Raises AwsError for too many or invalid tags.

    Tags of another protocol may have any characters, and stay.
    """
    together = {**before, **added}
    if len(together) > limits.TAGS_MAX:
        raise invalid(f"Too many tags added for queue {queue}.")
    _check(added)
    return together


def _check(tags: Mapping[str, str]) -> None:
    for key, value in tags.items():
        if is_reserved(key):
            raise invalid(RESERVED_TAG)
        if not 1 <= len(key) <= limits.TAG_KEY_CHARACTERS_MAX or not _is_text(key):
            raise invalid("A tag key must be 1 to 128 characters.")
        if len(value) > limits.TAG_VALUE_CHARACTERS_MAX or not _is_text(value):
            raise invalid("A tag value can have at most 256 characters.")


def _is_text(text: str) -> bool:
    """Return whether the text is printable: letters, numbers, punctuation and spaces.

    Any script is allowed.
    """
    return text.isprintable()
