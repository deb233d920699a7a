"""Repository of the results of queries, which are deleted with their jobs."""

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from storage.domain.errors import StorageUnavailable
from storage.domain.jobs import JobLease
from storage.postgres.repositories.jobs import hold_claim
from storage.postgres.repository import Repository
from storage.postgres.tables import QueryResultRow


class QueryResultRows(Repository):
    """Results as JSON. Every method raises StorageUnavailable or StorageBusy."""

    async def save(self, claim: JobLease, result: bytes) -> None:
        """Store the result of a job, instead of that of an earlier attempt. Raises LeaseLost."""
        statement = insert(QueryResultRow).values(job_id=claim.job_id, result=result)
        replacing = statement.on_conflict_do_update(
            index_elements=[col(QueryResultRow.job_id)], set_={"result": result}
        )
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await hold_claim(session, claim)
            await session.execute(replacing)

    async def find(self, job_id: str) -> bytes | None:
        """Return the result of a job, or None."""
        statement = select(col(QueryResultRow.result)).where(col(QueryResultRow.job_id) == job_id)
        async with self._database.reading() as session:
            return await session.scalar(statement)
