"""Every code block of every page, run against one complete deployment.

The pages run in the order in which they are read, and keep what they create: a reader has one deployment. The blocks of a
page are one session, in order, in a folder of their own: a block that names a file
in its first line is saved as that file, and `sh` blocks are run. Pages that need another deployment, such as
one with keys, have tests of their own: ELSEWHERE.
"""

import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.page_checks import CHECKS
from tests.acceptance.sdk_page import TYPESCRIPT, run_page
from tests.documentation import (
    DOCS,
    EXAMPLE_URL,
    ROOT,
    Block,
    blocks,
    name_of,
    pages,
    reading_order,
)
from tests.javascript import compile_typescript

JQ = ROOT / "tests" / "jq.py"
NOT_RUN_MAX = 36  # blocks that need several machines, another service, or a loss of data
SESSION_S = 240  # a busy machine takes a minute to start Spark

READ = {"text", "json", "toml", "yaml", "ini", "nginx", "haproxy", "java", "go", "hcl", "html"}
"""Languages that are not run; tests/unit/test_documentation.py parses what can be parsed."""

with socket.create_server(("127.0.0.1", 0)) as _free:
    RECEIVER_PORT = str(_free.getsockname()[1])
"""Replaces port 9000, at which the receivers of the pages listen."""

PROGRAMS = {"python": ("python3", "py"), "js": ("node --experimental-websocket", "mjs")}
"""Runners and suffixes of blocks that are not saved as files."""

ELSEWHERE = {
    "docs/how-to/frameworks.md": "contract/sdk/test_frameworks.py",
    "docs/how-to/keys.md": "contract/cli/test_keys.py",
    "docs/how-to/quotas.md": "contract/quotas/test_quotas.py",
    "docs/how-to/replicate.md": "acceptance/test_kill_store.py",
    "docs/how-to/spark.md": "spark/source/test_examples.py",
    "docs/how-to/test-programs.md": "unit/sdk/test_memory_service_page.py",
    "docs/how-to/views.md": "contract/views/test_page.py",
    "docs/reference/cli.md": "contract/cli/test_examples.py",
    "docs/reference/push.md": "contract/websocket/test_reference_page.py",
}
WORKING = {name_of(page) for page in DOCS.glob("*.md")}
"""Pages whose commands take hours, or need other tools."""

SHELL = r"""
set -euo pipefail
curl() {
    case " $* " in
        *" -N "*) command curl -sS --fail-with-body -m 1 "$@" || test $? = 28 ;;
        *) command curl -sS --fail-with-body "$@" ;;
    esac && echo
}
millstream() { "$PYTHON" -m api.cli "$@"; }
command -v jq > /dev/null || jq() { "$PYTHON" "$JQ" "$@"; }
"""

SIGNED = "export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_DEFAULT_REGION=us-east-1"
GIVEN = {
    "docs/explanation/archive.md": f"curl -X PUT {EXAMPLE_URL}/v1/streams/readings",
    "docs/reference/metrics.md": f"curl -X PUT {EXAMPLE_URL}/v1/queues/orders",
    "docs/reference/kinesis.md": SIGNED,
    "docs/reference/sqs.md": SIGNED,
}
"""Prerequisites of a page."""

OWN_RUNNERS = {"docs/how-to/sdks.md": run_page}
"""Pages whose blocks are not one session."""

SESSIONS = [
    page
    for page in reading_order()
    if name_of(page) not in {*ELSEWHERE, *WORKING}
    and any(block.language not in READ and not block.why for block in blocks(page))
]

pytestmark = pytest.mark.xdist_group("documentation")


def session(page: Path, folder: Path, url: str) -> str:
    """Run the blocks of a page, and return the output."""
    script = [SHELL, GIVEN.get(name_of(page), "").replace(EXAMPLE_URL, url)]
    for block in blocks(page):
        if block.why or block.language in READ:
            continue
        text = _own(block, url)
        if block.file_name:
            (folder / block.file_name).write_text(text)
        elif block.language in PROGRAMS:
            runner, suffix = PROGRAMS[block.language]
            (folder / f"line{block.line}.{suffix}").write_text(text)
            script.append(f"{runner} line{block.line}.{suffix}")
        else:
            script.append(text)
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=_environment(folder, url),
        capture_output=True,
        text=True,
        timeout=SESSION_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def _own(block: Block, url: str) -> str:
    """Adapt a block to this deployment."""
    text = block.text.replace(EXAMPLE_URL, url).replace("9000", RECEIVER_PORT)
    return text.replace("'millstream-client'", f"'{TYPESCRIPT}/dist/index.js'")


def _environment(folder: Path, url: str) -> dict[str, str]:
    """The environment without settings of Millstream or AWS, except the service's URL."""
    fields = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MILLSTREAM_", "AWS_", "REDIS_URL", "DATABASE_URL"))
    }
    return {
        **fields,
        "PATH": f"{Path(sys.executable).parent}:{fields['PATH']}",
        "PYTHON": sys.executable,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'openapi' / 'sdk' / 'python'}",
        "JQ": str(JQ),
        "XDG_CONFIG_HOME": str(folder),
        "MILLSTREAM_URL": url,
    }


@pytest.mark.parametrize("page", SESSIONS, ids=map(name_of, SESSIONS))
def test_session_of_page_runs(page, documented, tmp_path):
    (tmp_path / "data").symlink_to(documented.log.with_name("data"))
    (tmp_path / "docs").symlink_to(DOCS)
    if any(block.language == "js" for block in blocks(page)):
        compile_typescript(TYPESCRIPT)

    printed_session = OWN_RUNNERS.get(name_of(page), partial(session, page))(
        tmp_path, documented.url
    )

    for sentence in SAID.get(name_of(page), ()):
        assert sentence in printed_session
    CHECKS.get(name_of(page), str)(printed_session)


SAID = {
    "README.md": ('"body":"hello"', "{'id': 2}", "{'page': '/cart'}", "{ id: 3 }"),
    "docs/tutorials/first-ten-minutes.md": (
        '"body":"later"',
        '"acknowledged":3',
        '"data":{"cents":-50}',
        '"records":0',
        '"state":"done"',
        '"body":{"cents":1250}',
    ),
    "docs/tutorials/worker.md": (
        "shipped 1",
        "shipped 3",
        "dead: ['a negative total']",
        "mailed ann",
        "mailed bea",
    ),
    "docs/tutorials/views.md": (
        '"celsius":26.5,"readings":1',
        '{"plan":"none","clicks":1}',
        '{"order_id":"o-1","cents":900,"paid":900}',
        '"change":"insert","row":{"card":"4711"',
    ),
    "docs/tutorials/from-sqs.md": ("done: resize 9.png", "resize 10.png", "resize 11.png"),
    "docs/tutorials/from-kinesis.md": ("page 5", '"OpenShardCount": 2', '"member"'),
    "docs/tutorials/from-rabbitmq.md": (
        "delivered to ann@example.com",
        '"reason":"not an address","count":1',
        "news-index [{'headline': 'moved'}]",
    ),
    "docs/tutorials/from-kafka.md": ("bea -50", "lag: 0", '"dry_run":false'),
    "docs/tutorials/from-nats.md": (
        "resized 1.png on attempt 1\n",
        "resized broken.png on attempt 2",
        '"acknowledged":2',
        '"key":"plant.3.temperature"',
    ),
    "docs/explanation/delivery.md": ("received 2 times", "booked 500"),
    "docs/explanation/queue-or-stream.md": (
        "0 left in the queue",
        "audit: 1 {'order': 2}",
        "2 receipts to send",
    ),
    "docs/explanation/event-sourcing.md": ("done refused {'ann': 200}", "[('ann', 200)]"),
    "docs/how-to/backup-and-upgrade.md": ("archive files: ", "Restored "),
    "docs/how-to/sdks.md": (
        """application/json b'{"id":1,"total":12.5}' 1""",
        "['/', '/cart', '/paid']",
        "queue_not_found 404",
        '{"page":"/paid"}',
        "shipped 1\n['a negative total']",
        "sdk-parcels true",
        "[ '/', '/cart', '/paid' ]",
        "sent 7",
    ),
    "docs/how-to/webhooks.md": (
        '"outcome":"delivered"',
        '{"invoice":7}',
        '"status":"delivered"',
    ),
    "docs/how-to/replay.md": (
        '"count":2,"exact":true',
        '"sent":2',
        '":source_offset"',
        '"id":"slow"',
    ),
    "docs/how-to/dead-letters.md": ('"reason":"card expired"', '"redriven":1'),
}
"""Minimum output of a page, so that the page cannot become outdated."""


def test_every_block_is_run_or_marked():
    for page in pages():
        if page in SESSIONS or name_of(page) in WORKING or "adr" in page.parts:
            continue
        left = [block for block in blocks(page) if block.language not in READ and not block.why]
        if left:
            runner = ROOT / "tests" / ELSEWHERE[name_of(page)]

            assert page.name in runner.read_text(), f"{name_of(page)} is not run by {runner}"


def test_few_blocks_are_not_run():
    not_run = [
        (name_of(page), block.line)
        for page in pages()
        if page != DOCS / "reference" / "commands.md"
        for block in blocks(page)
        if block.why
    ]

    assert len(not_run) <= NOT_RUN_MAX, not_run
