"""Fence around users' SQL, on Spark's own parser."""

import asyncio
from collections.abc import Sequence

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_worker.sql import functions
from spark_worker.sql.fence import AcceptedQuery, SqlFence
from spark_worker.sql.nodes import QUERIES
from spark_worker.sql.refusal import Position, SqlRefused
from storage.settings import StorageSettings
from tests.spark.sql.texts import (
    ATTACKS,
    CONTEXTS,
    OF_QUERIES,
    OF_VIEWS,
    ORDINARY,
    QUERY_ATTACKS,
    QUERY_CONTEXTS,
)

STORES = StorageSettings(redis_url="redis://unused", database_url="postgresql://unused")
RELATIONS = ("c", "u")
CLICKS = (
    "page string, ms bigint, key string, value string, data binary, event_time timestamp, tags array<string>, "
    "m map<string, string>, s struct<a: struct<b: int>>, user string"
)
USERS = "key string, name string, plan string"
REFLECT = "reflect('java.lang.System', 'getenv')"


@pytest.fixture
def spark(spark_of_the_run) -> SparkSession:
    """A new session of the shared JVM that has the declared relations only."""
    shared: SparkSession = asyncio.run(spark_of_the_run.lender(STORES)()).spark
    session = shared.newSession()
    session.createDataFrame([], CLICKS).createTempView("c")
    session.createDataFrame([], USERS).createTempView("u")
    return session


@pytest.fixture
def fence(spark) -> SqlFence:
    return SqlFence(spark)


@pytest.fixture
def query_fence(spark) -> SqlFence:
    """The fence of queries that run once."""
    return SqlFence(spark, QUERIES)


def refusal(fence: SqlFence, text: str) -> SqlRefused:
    with pytest.raises(SqlRefused) as caught:
        fence.check(text, RELATIONS)
    return caught.value


def unexpected(fence: SqlFence, texts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the texts that pass, or whose refusals do not say what is expected."""
    wrong = []
    for text, expected in texts:
        try:
            wrong.append((text[:200], str(fence.check(text, RELATIONS))))
        except SqlRefused as error:
            if expected not in str(error):
                wrong.append((text[:200], str(error)[:200]))
    return wrong


def registry(spark: SparkSession) -> frozenset[str]:
    """Return the functions and table functions that Spark has."""
    state = spark._jsparkSession.sessionState()
    registries = (state.functionRegistry(), state.tableFunctionRegistry())
    listed = [functions.listFunction() for functions in registries]
    return frozenset(names.apply(i).funcName() for names in listed for i in range(names.size()))


def test_attacks_are_refused(fence):
    assert unexpected(fence, ATTACKS) == []


def test_attacks_are_refused_in_queries(query_fence):
    assert unexpected(query_fence, [*ATTACKS, *QUERY_ATTACKS]) == []


def test_views_and_queries_have_grammars_of_their_own(fence, query_fence, spark):
    assert unexpected(fence, OF_QUERIES) == []
    assert unexpected(query_fence, OF_VIEWS) == []
    for text, _ in OF_QUERIES:
        query_fence.check(text, RELATIONS)
        assert spark.sql(text).schema is not None
    for text, _ in OF_VIEWS:
        fence.check(text, RELATIONS)


def test_attack_is_refused_in_every_place_of_a_query(fence):
    refusals = [refusal(fence, text.format(*[REFLECT] * 2)) for text in CONTEXTS]

    assert {refused.problem for refused in refusals} == {"the function reflect is not allowed"}


def test_every_new_class_of_queries_checks_what_is_below(query_fence):
    """A class whose JSON leaves an expression out would let anything pass."""
    texts = [text.format(*[REFLECT] * 2) for text in (*CONTEXTS, *QUERY_CONTEXTS)]
    problems = {refusal(query_fence, text).problem for text in texts if "listagg" not in text}

    assert problems == {"the function reflect is not allowed"}


def test_ordinary_queries_pass_and_can_be_analyzed(fence, spark):
    for text in ORDINARY:
        accepted = fence.check(text, RELATIONS)

        assert accepted.text == text
        assert {"c"} <= accepted.relations <= {"c", "u"}
        assert spark.sql(text).schema is not None


def test_accepted_query_states_what_it_uses(fence):
    text = "with a as (select upper(page) as p from c) select x.p from a x join a y on x.p = y.p"

    assert fence.check(text, RELATIONS) == AcceptedQuery(
        text, frozenset({"c"}), frozenset({"upper"}), frozenset(), 2
    )


def test_relations_of_common_table_expressions_are_counted(fence):
    steps = [
        f", a{i} as (select x.page from a{i - 1} x join a{i - 1} y on x.page = y.page)"
        for i in range(1, 30)
    ]
    text = f"with a0 as (select page from c){''.join(steps)} select page from a29"

    assert "reads 32 relations" in str(refusal(fence, text))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("select page,\n  reflect('a') from c", Position(2, 3)),
        ("select page\nfrom c\njoin other on true", Position(3, 6)),
        ("with a as (\nselect rand() from c) select * from a", Position(2, 8)),
        ("select case when ms > 1 then uuid() end from c", Position(1, 30)),
        ("select page\nfrom c where '${env:A}' = ''", Position(2, 15)),
        ("select page\nfrom c where ms >", Position(2, 18)),
        ("set a = b", Position(1, 1)),
    ],
)
def test_refusal_has_line_and_column(fence, text, position):
    assert refusal(fence, text).position == position


def test_refusal_names_what_is_allowed_instead(fence):
    assert str(refusal(fence, "select split(page, ',') from c")) == (
        "Line 1, column 8: the function split is not allowed. Use like, contains, startswith, "
        "split_part or substring_index: a regular expression can run without end."
    )
    assert refusal(fence, "select page from d").instead == "Use one of: c, u."


def test_every_function_of_spark_is_judged(spark):
    """A function that a later Spark adds is in neither list."""
    assert registry(spark) == functions.ALLOWED | functions.REFUSED.keys()
    assert not functions.ALLOWED & functions.REFUSED.keys()


def test_names_without_call_are_columns_or_refused(fence, spark):
    """Spark reads some names as functions where no column has them."""
    for name in sorted(functions.REFUSED.keys() | functions.AMBIENT_COLUMNS):
        if name in functions.AMBIENT_COLUMNS:
            assert name in refusal(fence, f"select `{name}` from c").problem
        else:
            with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
                spark.sql(f"select `{name}` from u").schema  # noqa: B018  analyzes


def test_checks_execute_nothing(fence, spark):
    settings, tables = dict(spark.conf.getAll), spark.catalog.listTables()
    for text, _ in ATTACKS:
        refusal(fence, text)

    assert dict(spark.conf.getAll) == settings
    assert spark.catalog.listTables() == tables
