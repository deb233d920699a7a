"""Transform of a route: another body, headers and subject, made of the message's values.

    {"paths": {"id": "/body/order/id"}, "template": {"order": "<id>", "at": "<published_at>"},
     "headers": {"set": {"tenant": "t<key>"}, "remove": ["debug"]}, "subject": "order.<id>", "strict": false}

A path is a JSON Pointer of the message's document (`storage.domain.filters.documents`), `select` one of its body. Names that are
there without a path: `<message>`, the body; `<subject>`, `<key>`, `<id>`, `<published_at>`, `<topic>`, `<route>`. What a path
does not find is null in a JSON value and empty in a text; with `strict`, the message is not delivered. The result depends on
the message and the definition alone.
"""

from functools import cached_property
from typing import Any

import msgspec

from storage.domain.topics.transformer import Transformer


class HeaderTransform(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Headers to remove, and then headers to set, each to a text template."""

    templates: dict[str, str] = msgspec.field(default_factory=dict, name="set")
    remove: tuple[str, ...] = ()


class Transform(msgspec.Struct, frozen=True, kw_only=True, dict=True, forbid_unknown_fields=True):
    """Transform of a route.

    `template`: a JSON value or a text; None leaves the body as it is, or takes the part of it that `select` names.
    """

    select: str | None = None
    paths: dict[str, str] = {}
    template: Any = None
    headers: HeaderTransform = HeaderTransform()
    subject: str | None = None
    strict: bool = False

    @cached_property
    def transformer(self) -> Transformer:
        """The compiled transform."""
        return Transformer(
            select=self.select,
            paths=self.paths,
            template=self.template,
            headers=self.headers.templates,
            removed_headers=self.headers.remove,
            subject=self.subject,
            is_strict=self.strict,
        )
