"""Statements of the security page that are checked against the code."""

import re
from pathlib import Path

from storage.domain import limits
from storage.domain.access.permissions import GRANTS_OF, Action, Role

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "security.md").read_text()


def test_role_table_matches_grants():
    head = "| action | " + " | ".join(role.value for role in Role) + " |"
    rows = [
        f"| `{action}` | "
        + " | ".join("yes" if GRANTS_OF[role].names_action(action) else "" for role in Role)
        + " |"
        for action in Action
    ]

    subs = [re.sub(r" +", " ", line) for line in PAGE.splitlines()]

    assert head in subs
    assert [line for line in subs if line.startswith("| `") and ":" in line.split("`")[1]] == [
        re.sub(r" +", " ", row) for row in rows
    ]


def test_limits_on_the_page_match_the_code():
    for said in (
        f"{limits.HEAD_BYTES_MAX // limits.KIB} KiB, {limits.HEAD_HEADERS_MAX} headers, "
        f"{limits.URL_BYTES_MAX // limits.KIB} KiB of URL",
        f"{limits.HEAD_MS_MAX // 1_000} s (408)",
        f"{limits.REQUEST_BYTES_MAX // limits.MIB} MiB, {limits.CONTROL_BYTES_MAX // limits.MIB} MiB of",
        f"{limits.PUBLIC_BODY_BYTES_MAX // limits.MIB} MiB of configuration and of an event",
        f"{(limits.HEAD_MS_MAX + limits.BODY_MS_MAX) // 1_000} s from the request's beginning, "
        f"and one more for each {limits.BODY_BYTES_PER_SECOND_MIN // limits.KIB} KiB",
        f"{limits.QUERY_PARAMETERS_MAX} |",
        f"{limits.FRAME_BYTES_MAX // limits.MIB} MiB |",
    ):
        assert said in PAGE


def test_files_named_on_the_page_exist():
    root = Path(__file__).parents[2]
    for path in re.findall(r"`(tests/[a-z_/]+\.py)`", PAGE):
        assert (root / path).is_file(), path
