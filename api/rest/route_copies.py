"""Parts of a route's configuration that make its copies: transform and key."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from api.rest.field_map import MappedConfig, domain_value
from storage.domain import limits
from storage.domain.topics.transform import HeaderTransform, Transform

Template = Annotated[
    str, Field(description="Text in which `<name>` stands for the text of what it names.")
]


class HeaderTransformConfig(MappedConfig):
    """Headers to remove, and then headers to set."""

    domain = HeaderTransform
    renamed: ClassVar = {"set": "templates"}

    set: dict[str, Template] = {}
    remove: list[str] = []


class TransformConfig(MappedConfig):
    """Another body, headers or subject for a route's copies."""

    domain = Transform

    select: Annotated[
        str | None,
        Field(
            description="JSON Pointer to the part of the body that copies have.",
            examples=["/order"],
        ),
    ] = None
    paths: Annotated[
        dict[str, str],
        Field(
            description=f"Names of values of the message, each with a JSON Pointer such as `/body/order/id`, `/headers/tenant`, "
            f"`/subject` or `/key`; at most {limits.TRANSFORM_PATHS_MAX}. Always there: `<message>`, the body; `<subject>`, `<key>`, "
            "`<id>`, `<published_at>`, `<topic>`, `<route>`.",
            examples=[{"order": "/body/order/id"}],
        ),
    ] = {}
    template: Annotated[
        Any,
        Field(
            description="The new body: a JSON value or a text. `<name>` is the value itself where it is a whole string of a JSON "
            "value, and else its text; `\\\\<` is the character. null: the body as it is.",
            examples=[{"order": "<order>", "at": "<published_at>"}],
        ),
    ] = None
    headers: HeaderTransformConfig = HeaderTransformConfig()
    subject: Template | None = None
    strict: Annotated[
        bool,
        Field(
            description="Do not deliver a message without a value that a path names. Otherwise it is null in JSON and empty in text."
        ),
    ] = False

    @classmethod
    def from_domain(cls, value: Transform, **others: Any) -> Self:
        return cls.mapped(value, template=value.template, **others)

    def to_domain(self) -> Transform:
        return domain_value(Transform, self, template=self.template)


CopyKeyField = Annotated[
    Any,
    Field(
        description="Key of the copies, which is the message group in a FIFO queue: `key`, `subject`, a JSON Pointer such as "
        '`/body/customer`, or `{"constant": "x"}`. null: the key of the message.',
        examples=["/body/customer"],
    ),
]
