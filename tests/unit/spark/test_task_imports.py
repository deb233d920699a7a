"""Modules that the tasks of a job load: on a cluster, each Python process loads them itself."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("job", ["archive", "compact"])
def test_tasks_of_files_load_no_engines(job):
    code = (
        f"import sys, spark_worker.jobs.{job};"
        "print(sys.modules.keys() & {'storage.bootstrap', 'sqlalchemy', 'psycopg', 'httpx', 'pandas'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "set()", done.stderr
