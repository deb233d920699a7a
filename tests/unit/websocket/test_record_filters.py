"""Record filters of frames."""

import msgspec
import pytest

from api.websocket.record_filters import FilterIn
from storage.domain.errors import ValidationFailed


def decoded(condition: bytes) -> FilterIn:
    return msgspec.json.decode(b'{"body": [{"path": "/a", %b}]}' % condition, type=FilterIn)


@pytest.mark.parametrize(
    "condition", [b'"equal_to": null', b'"equals": null', b'"equal_to": null, "equals": null']
)
def test_condition_has_either_name(condition):
    [accepted] = decoded(condition).to_domain().body

    assert accepted.equals is None


@pytest.mark.parametrize(
    "condition", [b'"equal_to": 1, "equals": 2', b'"equals": 1, "exists": true']
)
def test_conflicting_condition_is_rejected(condition):
    with pytest.raises(ValidationFailed):
        decoded(condition).to_domain()


def test_filter_without_conditions_selects_all():
    assert msgspec.json.decode(b"{}", type=FilterIn).to_domain().takes_all
