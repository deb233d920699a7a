"""Checks of a decoded plan that fail closed, on plans that Spark's parser does not make."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_worker.sql.checker import Checker
from spark_worker.sql.cost import Cost, Scope
from spark_worker.sql.nodes import VIEWS
from spark_worker.sql.refusal import NodeRefused
from spark_worker.sql.tree import Decoder
from storage.domain.limits import SQL_DEPTH_MAX

CATALYST = "org.apache.spark.sql.catalyst"
RELATION = f"{CATALYST}.analysis.UnresolvedRelation"
PROJECT = f"{CATALYST}.plans.logical.Project"
LITERAL = f"{CATALYST}.expressions.Literal"
NOT = f"{CATALYST}.expressions.Not"


def row(kind: str, children: int = 0, **fields: Any) -> dict[str, Any]:
    return {"class": kind, "num-children": children, **fields}


def relation(name: str = "[c]", **fields: Any) -> dict[str, Any]:
    return row(RELATION, multipartIdentifier=name, options=None, isStreaming=False, **fields)


def check(*rows: dict[str, Any]) -> Cost:
    return Checker(VIEWS, lambda _: False, lambda _: "").check(
        Decoder().decode([*rows]), Scope({"c": Cost(scans=1)})
    )


def literal(value: Any = "1", kind: str = "integer") -> dict[str, Any]:
    return row(LITERAL, value=value, dataType=kind)


def project(*expression: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return row(PROJECT, 1, projectList=[[*expression]], child=0, **fields)


def test_projection_of_declared_relation_passes():
    assert check(project(literal()), relation()) == Cost(scans=1, size=1)


@pytest.mark.parametrize(
    "rows",
    [
        [project(literal(), added=None), relation()],
        [project(literal(), added=[{"product-class": "X", "_1": None}]), relation()],
        [project(literal(), added=[[row("org.example.Exploit")]]), relation()],
        [project(literal(), added={"_2": [row(f"{CATALYST}.expressions.Rand")]}), relation()],
        [project(row("org.example.Project")), relation()],
        [project(row(f"{CATALYST}.expressions.Literal2")), relation()],
        [project(literal()), relation(), relation()],
        [project(literal()), relation("[c, d]")],
        [project(literal()), relation("[]")],
        [row("Project", 1, projectList=[], child=0), relation()],
    ],
)
def test_unknown_part_of_plan_is_refused(rows):
    with pytest.raises(NodeRefused):
        check(*rows)


@pytest.mark.parametrize(
    "value", ["now", " Today ", "tomorrow UTC", "yesterday+01:00", "nowEurope/Berlin", "NOW"]
)
def test_text_that_can_be_current_time_is_refused(value):
    with pytest.raises(NodeRefused, match="text"):
        check(project(literal(value, "string")), relation())


@pytest.mark.parametrize("value", ["nowhere", "todays", "know", "epoch", "2026-01-01"])
def test_other_text_passes(value):
    assert check(project(literal(value, "string")), relation()).scans == 1


@given(st.integers(0, 3 * SQL_DEPTH_MAX))
def test_depth_of_expressions_is_bounded(depth):
    expression = [row(NOT, 1, child=0)] * depth + [literal("true", "boolean")]
    try:
        check(project(*expression), relation())
    except NodeRefused:
        assert depth > SQL_DEPTH_MAX - 10
    else:
        assert depth <= SQL_DEPTH_MAX
