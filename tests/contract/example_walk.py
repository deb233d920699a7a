"""Runs the examples of the OpenAPI document in order on a live service."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from api.native.examples import API_KEY, KEY_ID, Example
from api.rest.routes.group_records import READ_MARK
from api.rest.routes.jobs import JOB_ID
from api.rest.routes.moves import MOVE_ID
from api.rest.routes.published_messages import BACK_TEST_ID, PUBLISHED_ID
from api.rest.routes.queries import QUERY_ID
from api.rest.routes.requests import REQUEST
from api.rest.routes.sockets import SOCKET_ID
from api.rest.routes.staged_writes import STAGED_ID
from api.rest.routes.view_backtests import VIEW_BACK_TEST_ID
from api.spec.examples import EXAMPLES
from tests.arrow import arrow_stream

STAGED = arrow_stream([b"one", b"two"])
_PUT = (
    example.path.removeprefix("/v1/") for name, example in EXAMPLES.items() if name[:4] == "put_"
)
_NAMED = re.compile(
    "|".join(
        [
            *(path for path in _PUT if path.count("/") == 1),
            "queues/web",
            "archives/clicks",
            "replays/again",
            "queue:orders",
        ]
    )
)
_TOLD = {
    "start_move": {"id": MOVE_ID},
    "stage_records": {"id": STAGED_ID},
    "fetch_records": {"token": READ_MARK},
    "publish_messages": {"messages/0/id": PUBLISHED_ID},
    "send_request": {"request": REQUEST},
    "run_query": {"id": QUERY_ID},
    "start_backtest_job": {"id": BACK_TEST_ID},
    "start_view_backtest": {"id": VIEW_BACK_TEST_ID},
    "create_key": {"secret": API_KEY, "id": KEY_ID},
}


LAST = (
    "truncate_shard",
    "put_fence",
    "reshard_stream",
    "get_consumer_group",
    "delete_webhook",
    "delete_queue",
    "leave_group",
    "delete_consumer_group",
    "delete_view",
    "delete_stream",
    "delete_route",
    "delete_topic",
    "revoke_key",
)
"""Operations that show, change or remove what examples of several modules use."""


OF_REPLICA_SETS = {
    "configure_stores",
    "switch_over_stores",
    "replace_store",
    "recover_stores",
    "add_store",
    "remove_store",
}
"""Operations that a deployment with one store refuses."""


OF_FORMER_REVISIONS = {"roll_back_view"}
"""Operations that need a revision that a worker has replaced."""


class Walk:
    """One run through the examples, with names of its own and with ids from responses."""

    def __init__(
        self,
        name: str,
        make_job: Callable[..., None],
        fail_job: Callable[[str], None],
        log_delivery: Callable[[str, str], None],
        show_socket: Callable[[str], None],
    ) -> None:
        self._name = name
        self._show_socket = show_socket
        self._fail_job = fail_job
        self._log_delivery = log_delivery
        self._known = {JOB_ID: uuid.uuid4().hex}
        make_job(self._known[JOB_ID], "logs")

    def own(self, text: str) -> str:
        """Replace names and ids in a path or a body by those of this run."""
        named = _NAMED.sub(lambda found: f"{found[0]}-{self._name}", text)
        named = re.sub('"(orders|web|clicks|again)"', rf'"\1-{self._name}"', named)
        for example, told in self._known.items():
            named = named.replace(example, told)
        return named.replace("prefix=cl", f"prefix=clicks-{self._name}")

    def own_body(self, body: Any) -> Any:
        """Replace names and ids in a JSON body by those of this run."""
        return json.loads(self.own(json.dumps(body)))

    def steps(self) -> Iterator[tuple[str, Example]]:
        """Yield each operation and its example, with its preconditions met."""
        for operation in (*(name for name in EXAMPLES if name not in LAST), *LAST):
            if operation in (OF_REPLICA_SETS | OF_FORMER_REVISIONS):
                continue
            example = EXAMPLES[operation]
            if operation == "retry_replay":
                self._fail_job(f"replay:default:again-{self._name}")
            if operation == "resend_delivery":
                self._log_delivery(f"shop-{self._name}", example.path.split("/")[-2])
            if operation == "close_socket":
                self._show_socket(SOCKET_ID)
            yield operation, example

    def learn(self, operation: str, answer: dict[str, Any]) -> None:
        """Remember ids of a response that later examples need."""
        for member, example in _TOLD.get(operation, {}).items():
            self._known[example] = _member(answer, member)


def _member(answer: Any, path: str) -> str:
    """Return a member of a response, by the names and numbers that lead to it."""
    for part in path.split("/"):
        answer = answer[int(part) if part.isdigit() else part]
    return str(answer)
