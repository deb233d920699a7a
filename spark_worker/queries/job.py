"""Query job: runs a query of users in a session of its own, and stores the first rows.

    fence ──▶ relations ──▶ Spark's analyzer ──▶ limit, rows as JSON, bound of bytes ──▶ result of the job

The Spark jobs are cancelled after the query's time limit, and at its owner's request.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import functions as sf
from pyspark.sql.window import Window

from spark_worker.queries.records import RecordsDeleted
from spark_worker.queries.relations import ColumnsRefused, Relations
from spark_worker.runtime.cluster import cause_of
from spark_worker.runtime.job_context import JobContext, PermanentFailure, TransientFailure
from spark_worker.runtime.time_limit import time_limit
from spark_worker.sql.fence import SqlFence
from spark_worker.sql.nodes import QUERIES
from spark_worker.sql.refusal import SqlRefused, first_line
from spark_worker.views.planning.planner import FENCED_SETTINGS, refusal_of
from spark_worker.views.planning.plans import JSON
from storage.domain import limits
from storage.domain.queries.query import REFUSED_AT, QuerySpec
from storage.domain.queries.result import QueryResult, RelationRead
from storage.domain.views.plan import ViewColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SETTINGS = {
    **FENCED_SETTINGS,
    # It would evaluate the query's expressions in the optimizer, where no time limit reaches them.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
}
_ALIAS = "Name the columns with `as`, each once."


def run(work: JobContext) -> Mapping[str, Any]:
    """Run a query and store its result; return the number of records."""
    spec = work.spec(QuerySpec)
    work.require_spark()
    began_s = time.monotonic()
    try:
        with _time_limit(work, spec.query.time_limit_ms):
            result = _evaluate(work, spec, began_s)
    except SqlRefused as error:
        raise _refused(work, "/sql", error) from None
    except ColumnsRefused as error:
        raise _refused(work, f"/from/{error.name}/columns", error.refusal) from None
    work.check()
    work.call(work.storage.queries.save(work.claim, result))
    return {"records": sum(read.records for read in result.read.values())}


def _refused(work: JobContext, pointer: str, refusal: SqlRefused) -> PermanentFailure:
    work.report({**work.progress, REFUSED_AT: pointer})
    return PermanentFailure(str(refusal))


@contextmanager
def _time_limit(work: JobContext, limit_ms: int) -> Iterator[None]:
    """Cancel the Spark jobs of the block after a time. Raises PermanentFailure then."""
    context = work.spark.sparkContext

    def cancel() -> None:
        context._jsc.sc().cancelJobGroupAndFutureJobs(work.group)

    with time_limit(limit_ms, cancel) as is_over:
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            work.check()  # raises JobStopped if the jobs were cancelled because it was stopped
            if is_over.is_set():
                seconds = limit_ms / limits.SECOND_MS
                raise PermanentFailure(
                    f"The query took longer than {seconds:g} seconds."
                ) from error
            raise _failure_of(error) from error


def _failure_of(error: PySparkException | Py4JJavaError) -> Exception:
    """Return the failure of an error of Spark: permanent if the query or its records cause it."""
    cause = cause_of(error)
    if isinstance(error, PythonException):
        _, is_gone, detail = cause.partition(f"{RecordsDeleted.__name__}: ")
        return PermanentFailure(detail) if is_gone else TransientFailure(cause)
    if isinstance(error, PySparkException) and error.getCondition():
        return PermanentFailure(first_line(str(error)))
    return TransientFailure(cause)


def _evaluate(work: JobContext, spec: QuerySpec, began_s: float) -> QueryResult:
    query, spark = spec.query, work.spark.newSession()
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    accepted = SqlFence(spark, QUERIES).check(query.sql, query.relations)
    read = Relations(work, spark, spec).declare(accepted.relations)
    _choose_codegen(spark, read)
    frame = _analyzed(spark, accepted.text)
    columns = _columns_of(frame)
    rows, truncated = _first_rows(frame, columns, query.rows_max)
    return QueryResult(
        columns=columns,
        rows=msgspec.Raw(b"[%b]" % b",".join(rows)),
        truncated=truncated,
        read=read,
        milliseconds=round((time.monotonic() - began_s) * limits.SECOND_MS),
    )


def _choose_codegen(spark: "SparkSession", read: Mapping[str, RelationRead]) -> None:
    """Interpret a query of few records: to generate and compile its code would take longer."""
    if sum(one.records for one in read.values()) < limits.VIEW_CODEGEN_RECORDS:
        spark.conf.set("spark.sql.codegen.wholeStage", "false")
        spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        spark.conf.set("spark.sql.shuffle.partitions", "1")


def _analyzed(spark: "SparkSession", text: str) -> "DataFrame":
    try:
        return spark.sql(text)
    except PySparkException as error:
        raise refusal_of(error) from None


def _columns_of(frame: "DataFrame") -> tuple[ViewColumn, ...]:
    """Return the columns of the rows. Raises SqlRefused for what JSON objects cannot have."""
    names = [name.lower() for name in frame.columns]
    if len(names) > limits.VIEW_OUTPUT_COLUMNS_MAX:
        most = limits.VIEW_OUTPUT_COLUMNS_MAX
        raise SqlRefused(f"a result of {len(names)} columns", f"Select at most {most}.")
    for name in names:
        if names.count(name) > 1:
            raise SqlRefused(f"a result with two columns {name!r}", _ALIAS)
    return tuple(ViewColumn(field.name, field.dataType.simpleString()) for field in frame.schema)


def _first_rows(
    frame: "DataFrame", columns: tuple[ViewColumn, ...], rows_max: int
) -> tuple[list[bytes], bool]:
    """Return the first rows as JSON, and whether there are more.

    What Spark returns is bounded by QUERY_RESULT_BYTES_MAX, a row behind it has no text.
    """
    numbered = frame.toDF(*[f"c{nth}" for nth in range(len(columns))]).limit(rows_max + 1)
    row = sf.struct(*[sf.col(f"c{nth}").alias(one.name) for nth, one in enumerate(columns)])
    try:
        encoded = numbered.select(
            sf.to_json(row, JSON).alias("row"), sf.monotonically_increasing_id().alias("nth")
        )
    except PySparkException as error:
        raise SqlRefused(first_line(str(error)), "Cast the column to string.") from None
    size = sf.octet_length("row")
    end = sf.sum(size).over(Window.orderBy("nth")).alias("end")
    fits = sf.col("end") <= limits.QUERY_RESULT_BYTES_MAX
    bounded = encoded.select("*", end).where(sf.col("end") - size < limits.QUERY_RESULT_BYTES_MAX)
    table = bounded.orderBy("nth").select(sf.when(fits, sf.col("row")).alias("row")).toArrow()
    rows = [row.encode() for row in table.column("row").to_pylist() if row is not None]
    return rows[:rows_max], len(rows) > rows_max or len(rows) < table.num_rows
