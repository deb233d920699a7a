"""Property tests of the OpenAPI document by schemathesis.

Responses match the document, none is an internal error, and none is given without a credential.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from storage.settings import StorageSettings
from tests.secured_service import running_secured_service
from tests.view_worker import view_worker

pytestmark = pytest.mark.one_store

ROOT = Path(__file__).parents[3]
CHECKS = (
    "not_a_server_error",
    "ignored_auth",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "missing_required_header",
)
LEFT_OUT = (
    "revoke_key",  # it would find its own key in the list
    "change_key",
    "rotate_key",
    "log_out",
    "stage_records",  # it does not speak Arrow
)
WAITING = (
    "receive_messages",
    "fetch_records",
    "read_events",
    "read_shard_events",
    "read_stream",
    "read_shard",
    "read_queue_changes",
    "read_view_rows",
    "get_reply",
)


async def tried(redis_url: str, database_url: str, *options: str) -> tuple[int, str]:
    """Run it with an administrator's key; returns the exit code and the output."""
    stores = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with (
        running_secured_service(redis_url, database_url) as secured_service,
        view_worker(stores),
    ):
        key = await secured_service.key(all_namespaces=True)
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("st")),
            "run",
            str(ROOT / "openapi" / "openapi.json"),
            f"--url={secured_service.url}",
            f"--header=Authorization: Bearer {key.token}",
            f"--checks={','.join(CHECKS)}",
            *(f"--exclude-operation-id={name}" for name in LEFT_OUT),
            "--generation-with-security-parameters=false",
            "--generation-deterministic",
            "--continue-on-failure",
            "--warnings=off",
            "--no-color",
            *options,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/tmp",
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()


async def test_responses_match_openapi_document(redis_url, database_url):
    code, output = await tried(
        redis_url,
        database_url,
        "--phases=examples,fuzzing",
        "--max-examples=1",
        *(f"--exclude-operation-id={name}" for name in WAITING),
    )

    assert code == 0, output[-4_000:]


@pytest.mark.chaos
async def test_responses_match_openapi_document_in_longer_run(redis_url, database_url):
    code, output = await tried(
        redis_url,
        database_url,
        "--phases=examples,coverage,fuzzing",
        "--max-examples=30",
        "--max-time=60",
        *(f"--exclude-operation-id={name}" for name in WAITING),
    )

    assert code == 0, output[-8_000:]
