"""Columns of a list of bodies from their JSON fields, which JSON Pointers name."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from api.admin.browsing.body_preview import escape_misleading
from api.admin.display_formats import NOTHING as NO_VALUE
from storage.domain.log.json_body import JSON_POINTER, NOTHING, at_pointer, json_of

COLUMNS_MAX = 8
_OFFERED_MAX = 40
_DEPTH_MAX = 3
_CELL_CHARACTERS = 80


class FieldChoice(NamedTuple):
    """A field that can be a column: `columns` is the parameter of the page once it is toggled."""

    pointer: str
    is_chosen: bool
    columns: str


class FieldColumns(NamedTuple):
    """Chosen fields, all fields of the page's bodies, and the cells of each row."""

    chosen: tuple[str, ...]
    choices: list[FieldChoice]
    cells: list[list[str]]


def field_columns(parameter: str, bodies: Sequence[bytes]) -> FieldColumns:
    """Return the columns that a page's parameter names: JSON Pointers, separated by commas."""
    chosen = _pointers(parameter)
    values = [json_of(body) for body in bodies]
    offered = dict.fromkeys(chosen)
    for value in values:
        offered |= dict.fromkeys(_fields(value, "", _DEPTH_MAX))
    return FieldColumns(
        chosen,
        [_choice(pointer, chosen) for pointer in list(offered)[:_OFFERED_MAX]],
        [[_cell(value, pointer) for pointer in chosen] for value in values],
    )


def _pointers(parameter: str) -> tuple[str, ...]:
    pointers = [part for part in parameter.split(",") if part and JSON_POINTER.fullmatch(part)]
    return tuple(dict.fromkeys(pointers))[:COLUMNS_MAX]


def _fields(value: Any, pointer: str, depth: int) -> Iterable[str]:
    """Yield the pointers of the scalar members of an object, without those of arrays."""
    if not isinstance(value, dict) or not depth:
        return
    for name, member in value.items():
        path = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(member, dict):
            yield from _fields(member, path, depth - 1)
        elif not isinstance(member, list) and "," not in path:
            yield path


def _choice(pointer: str, chosen: tuple[str, ...]) -> FieldChoice:
    is_chosen = pointer in chosen
    others = [other for other in chosen if other != pointer]
    return FieldChoice(pointer, is_chosen, ",".join(others if is_chosen else [*chosen, pointer]))


def _cell(value: Any, pointer: str) -> str:
    member = at_pointer(value, pointer)
    if member is NOTHING:
        return NO_VALUE
    text = member if isinstance(member, str) else json.dumps(member, ensure_ascii=False)
    cut = text[:_CELL_CHARACTERS] + ("…" if len(text) > _CELL_CHARACTERS else "")
    return escape_misleading(cut)
