"""Classes of plan nodes and expressions of Spark's parser that users' SQL may contain.

What is not listed is refused, so a new class of a later Spark is too. The value of a class lists the fields for which
Spark's JSON has `null`, because it cannot encode them, and which contain no expression or are checked elsewhere.
"""

from collections.abc import Mapping
from typing import NamedTuple

from spark_worker.sql import functions

_PLANS = "catalyst.plans.logical."
_ANALYSIS = "catalyst.analysis."
_EXPRESSIONS = "catalyst.expressions."

PLANS: dict[str, frozenset[str]] = {
    f"{_PLANS}Project": frozenset(),
    f"{_PLANS}Filter": frozenset(),
    f"{_PLANS}Aggregate": frozenset({"hint"}),
    f"{_PLANS}Join": frozenset({"hint"}),
    f"{_PLANS}SubqueryAlias": frozenset(),
    f"{_PLANS}UnresolvedWith": frozenset(),
    f"{_PLANS}Union": frozenset(),
    f"{_PLANS}Distinct": frozenset(),
    f"{_PLANS}Generate": frozenset(),
    f"{_ANALYSIS}UnresolvedHaving": frozenset(),
    f"{_ANALYSIS}UnresolvedSubqueryColumnAliases": frozenset(),
    f"{_ANALYSIS}UnresolvedRelation": frozenset({"options"}),
}
_UNRESOLVED = """
MultiAlias UnresolvedAlias UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator
UnresolvedOrdinal UnresolvedStar
"""
_PLAIN = """
Add Alias And Between BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen Coalesce Concat CreateNamedStruct Divide
EqualNullSafe EqualTo GreaterThan GreaterThanOrEqual If In IntegralDivide IsNotNull IsNull LambdaFunction LessThan
LessThanOrEqual Multiply NamePlaceholder$ Not Or Overlay Remainder ShiftLeft ShiftRight ShiftRightUnsigned SortOrder
StringLocate StringTrim StringTrimLeft StringTrimRight Substring Subtract TimestampAdd TimestampDiff UnaryMinus
UnaryPositive UnresolvedNamedLambdaVariable
"""
_AGGREGATES = "AggregateExpression AnyValue First Last"  # which the parser builds itself
_LIKE = "ILike Like LikeAll LikeAny NotLikeAll NotLikeAny"
EXPRESSIONS: dict[str, frozenset[str]] = {
    **{_ANALYSIS + name: frozenset() for name in _UNRESOLVED.split()},
    **{_EXPRESSIONS + name: frozenset({"evalContext"}) for name in _PLAIN.split()},
    **{f"{_EXPRESSIONS}aggregate.{name}": frozenset() for name in _AGGREGATES.split()},
    **{_EXPRESSIONS + name: frozenset({"escapeChar", "patterns"}) for name in _LIKE.split()},
    f"{_EXPRESSIONS}Cast": frozenset({"evalMode", "evalContext"}),
    f"{_EXPRESSIONS}Literal": frozenset({"value"}),
}
_ORDERED = {
    f"{_PLANS}Sort": frozenset({"hint"}),
    f"{_PLANS}GlobalLimit": frozenset[str](),
    f"{_PLANS}LocalLimit": frozenset[str](),
    f"{_PLANS}Offset": frozenset[str](),
    f"{_PLANS}Intersect": frozenset[str](),
    f"{_PLANS}Except": frozenset[str](),
}
_WINDOWS = """
WindowExpression WindowSpecDefinition SpecifiedWindowFrame UnspecifiedFrame$ CurrentRow$ UnboundedPreceding$
UnboundedFollowing$
"""


class Grammar(NamedTuple):
    """Classes and functions that a kind of queries may contain."""

    plans: Mapping[str, frozenset[str]]
    expressions: Mapping[str, frozenset[str]]
    functions: frozenset[str]

    def unencoded(self, kind: str) -> frozenset[str] | None:
        """Return the fields of a class that may be null in Spark's JSON; None if it is refused."""
        return self.plans.get(kind, self.expressions.get(kind))


VIEWS = Grammar(PLANS, EXPRESSIONS, functions.ALLOWED)
"""Queries of views, whose rows are kept up to date."""

QUERIES = Grammar(
    PLANS | _ORDERED,
    EXPRESSIONS | {_EXPRESSIONS + name: frozenset() for name in _WINDOWS.split()},
    (functions.ALLOWED - functions.BUFFERED.keys()) | functions.RANKS,
)
"""Queries that run once, over all data: order, limits, set operations and window functions too."""

_SELECT = "Write one select statement over the declared relations."
_ORDER = "A view is a set of rows: order and limit them where they are read."
_TIME = "Use event_time or arrival_time: a rebuild must give the same rows."
_LATERAL = "Use a lateral view of explode, inline or json_tuple."
_JOIN = "Join the relation instead."
_GROUP = "Group by the columns."
_WINDOW = "Group by window(…), or use max_by and min_by."
_LITERAL = "Write the value as a literal."
_RELATION = "Select from a declared relation."

_REFUSED = {
    "Cube": ("cube", _GROUP),
    "Rollup": ("rollup", _GROUP),
    "GroupingSets": ("grouping sets", _GROUP),
    "CurrentDate": ("current_date", _TIME),
    "CurrentTimestamp": ("current_timestamp", _TIME),
    "Exists": ("exists", _JOIN),
    "InSubquery": ("in with a subquery", _JOIN),
    "ScalarSubquery": ("a subquery as a value", _JOIN),
    "ExpressionWithUnresolvedIdentifier": ("identifier(…)", "Write the name itself."),
    "PlanWithUnresolvedIdentifier": ("identifier(…)", "Write the name itself."),
    "GlobalLimit": ("limit", _ORDER),
    "LocalLimit": ("limit", _ORDER),
    "Offset": ("offset", _ORDER),
    "Sort": ("order by", _ORDER),
    "LateralJoin": ("lateral", _LATERAL),
    "UnresolvedTableValuedFunction": ("a function as a relation", _LATERAL),
    "LocalRelation": ("values", "Declare a relation, or use a case expression."),
    "UnresolvedInlineTable": ("values", "Declare a relation, or use a case expression."),
    "NamedParameter": ("a parameter", _LITERAL),
    "PosParameter": ("a parameter", _LITERAL),
    "OneRowRelation": ("a select without from", _RELATION),
    "NamedStreamingRelation": ("stream", "Name the relation alone."),
    "RelationTimeTravel": ("as of", "Declare where the relation starts."),
    "Pivot": ("pivot", _SELECT),
    "Unpivot": ("unpivot", _SELECT),
    "PipeOperator": ("|>", _SELECT),
    "RLike": ("rlike", "Use like, contains, startswith or split_part."),
    "Sample": ("tablesample", "Filter by a hash of the key: pmod(xxhash64(key), 100) < 10."),
    "ScriptTransformation": ("a script", _SELECT),
    "UnresolvedHint": ("a hint", "Leave it out: the planner decides."),
    "WindowExpression": ("over", _WINDOW),
    "WithWindowDefinition": ("a window clause", _WINDOW),
    "CompoundBody": ("a script of several statements", _SELECT),
}


def describe(kind: str) -> tuple[str, str]:
    """Return the SQL name of a class that is not allowed, and what to write instead."""
    name = kind.rpartition(".")[2]
    return _REFUSED.get(name, (name, _SELECT))
