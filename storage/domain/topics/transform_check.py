"""Check of a transform's definition, with a JSON Pointer to each fault."""

from collections.abc import Iterable, Iterator

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault
from storage.domain.filters.documents import FIELD_NAMES
from storage.domain.filters.reasons import pointer_token
from storage.domain.log.json_body import JSON_POINTER
from storage.domain.topics.template import PLACEHOLDER_NAME, is_deeper, names_in, strings_in
from storage.domain.topics.transform import Transform
from storage.domain.topics.transformer import FACT_NAMES

_POINTER = "/transform"


def transform_faults(transform: Transform) -> list[FieldFault]:
    """Return the faults of a transform; pointers begin at its route."""
    return [
        *_body_faults(transform),
        *_path_faults(transform.paths),
        *_header_faults(transform),
        *_template_faults(f"{_POINTER}/subject", transform.subject, transform.paths),
    ]


def _body_faults(transform: Transform) -> Iterator[FieldFault]:
    pointer, template = f"{_POINTER}/template", transform.template
    if transform.select is not None:
        if template is not None:
            yield FieldFault(pointer, "Specify only one of select and template", "exclusive")
        yield from _pointer_faults(f"{_POINTER}/select", transform.select)
    if is_deeper(template, limits.TRANSFORM_DEPTH_MAX):
        detail = f"At most {limits.TRANSFORM_DEPTH_MAX} levels of objects and arrays"
        yield FieldFault(pointer, detail, "too_deep")
    else:
        yield from _template_faults(pointer, template, transform.paths)


def _path_faults(paths: dict[str, str]) -> Iterator[FieldFault]:
    if len(paths) > limits.TRANSFORM_PATHS_MAX:
        detail = f"At most {limits.TRANSFORM_PATHS_MAX} paths"
        yield FieldFault(f"{_POINTER}/paths", detail, "too_many")
    for name, path in paths.items():
        pointer = f"{_POINTER}/paths/{pointer_token(name)}"
        if not PLACEHOLDER_NAME.fullmatch(name):
            detail = "A name is a letter or _, then up to 63 letters, digits, _ and -"
            yield FieldFault(pointer, detail, "invalid_name")
        yield from document_pointer_faults(pointer, path)


def document_pointer_faults(pointer: str, path: str) -> list[FieldFault]:
    """Return the faults of a JSON Pointer into a message's document."""
    before, _, rest = path.partition("/")
    if before or rest.partition("/")[0] not in FIELD_NAMES:
        tops = ", ".join(f"/{name}" for name in sorted(FIELD_NAMES))
        return [FieldFault(pointer, f"A path begins with one of {tops}", "invalid_pointer")]
    return _pointer_faults(pointer, path)


def _pointer_faults(pointer: str, path: str) -> list[FieldFault]:
    if not JSON_POINTER.fullmatch(path):
        return [FieldFault(pointer, "Not a JSON Pointer (RFC 6901)", "invalid_pointer")]
    if len(path) > limits.TRANSFORM_PATH_CHARACTERS_MAX:
        detail = f"At most {limits.TRANSFORM_PATH_CHARACTERS_MAX} characters"
        return [FieldFault(pointer, detail, "too_long")]
    return []


def _header_faults(transform: Transform) -> Iterator[FieldFault]:
    templates, removed = transform.headers.templates, transform.headers.remove
    pointer = f"{_POINTER}/headers"
    for part, names in (("set", templates), ("remove", removed)):
        if len(names) > limits.HEADERS_MAX:
            yield FieldFault(f"{pointer}/{part}", f"At most {limits.HEADERS_MAX}", "too_many")
    named = [
        *((f"{pointer}/set/{pointer_token(name)}", name) for name in templates),
        *((f"{pointer}/remove/{number}", name) for number, name in enumerate(removed)),
    ]
    yield from _name_faults(named)
    yield from _template_faults(f"{pointer}/set", templates, transform.paths)


def _name_faults(named: Iterable[tuple[str, str]]) -> Iterator[FieldFault]:
    for pointer, name in named:
        if name.startswith(":") or not 0 < len(name) <= limits.HEADER_NAME_CHARACTERS_MAX:
            detail = "A header name must be 1 to 256 characters and cannot start with ':'"
            yield FieldFault(pointer, detail, "invalid_name")


def _template_faults(pointer: str, template: object, paths: dict[str, str]) -> Iterator[FieldFault]:
    if len(msgspec.json.encode(template)) > limits.TRANSFORM_TEMPLATE_BYTES_MAX:
        detail = f"At most {limits.TRANSFORM_TEMPLATE_BYTES_MAX} bytes of JSON"
        yield FieldFault(pointer, detail, "too_large")
        return
    for place, text in strings_in(template, pointer):
        for name in dict.fromkeys(names_in(text)):
            if name not in FACT_NAMES and name not in paths:
                detail = f"'<{name}>' is not a name of paths; write '\\<' for the character itself"
                yield FieldFault(place, detail, "unknown_name")
