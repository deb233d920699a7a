"""Permissions of queries: on each stream and view that they read."""

import pytest

from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import Effect, Grant, Role
from storage.settings import StorageSettings
from tests.secured_service import running_secured_service
from tests.view_worker import view_worker

pytestmark = pytest.mark.one_store

SQL = "select page, count(*) as clicks from c group by page"
QUERY = {"sql": SQL, "from": {"c": {"stream": "clicks"}}}
JOINED = {"sql": SQL, "from": {"c": {"stream": "clicks"}, "u": {"table": "users"}}}
OVER_A_VIEW = {"sql": SQL, "from": {"c": {"stream": "clicks"}, "v": {"view": "rows"}}}


def grants(*permitted: tuple[str, str]) -> Rights:
    return Rights(grants=tuple(Grant(Effect.ALLOW, (what,), (name,)) for what, name in permitted))


@pytest.fixture
async def secured_service(redis_url, database_url):
    """A service with a worker that answers queries."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with (
        running_secured_service(redis_url, database_url) as secured_service,
        view_worker(settings),
    ):
        yield secured_service


@pytest.fixture
async def administrator(secured_service):
    """A key for all namespaces, by which a second stream and a view were created."""
    key = await secured_service.key(all_namespaces=True)
    view = {"sql": SQL, "from": {"c": {"stream": "clicks"}}}
    for path, body in (("streams/users", {}), ("views/rows", view)):
        made = await secured_service.request("PUT", f"/v1/{path}", key, json=body)
        assert made.status_code == 201
    return key


@pytest.mark.parametrize(
    ("rights", "statuses"),
    [
        (Rights(roles=(Role.OPERATOR,)), [200, 200, 200, 200]),
        (Rights(roles=(Role.CONSUMER,)), [403, 403, 403, 403]),
        (grants(("query:run", "clicks"), ("stream:read", "clicks")), [200, 403, 403, 200]),
        (grants(("query:run", "*"), ("stream:read", "*")), [200, 200, 403, 200]),
        (grants(("query:run", "*"), ("view:read", "*")), [403, 403, 403, 404]),
        (grants(("query:run", "users"), ("stream:read", "*")), [403, 403, 403, 404]),
    ],
    ids=["operator", "consumer", "one stream", "streams", "views", "another stream"],
)
async def test_caller_may_query_what_it_may_read(secured_service, administrator, rights, statuses):
    """The last call reads the rows of a query that the administrator has run."""
    caller = await secured_service.key(rights)
    query = await secured_service.request("POST", "/v1/queries", administrator, json=QUERY)
    path = f"/v1/queries/{query.json()['id']}"

    calls = [
        *[
            await secured_service.request("POST", "/v1/queries", caller, json=body)
            for body in (QUERY, JOINED, OVER_A_VIEW)
        ],
        await secured_service.request("GET", path, caller),
    ]

    assert [call.status_code for call in calls] == statuses


async def test_query_of_another_namespace_does_not_exist(secured_service, administrator):
    query = await secured_service.request("POST", "/v1/queries", administrator, json=QUERY)
    path = f"/v1/queries/{query.json()['id']}"
    headers = {"millstream-namespace": "other"}
    await secured_service.request("PUT", "/v1/namespaces/other", administrator, json={})
    abroad = await secured_service.request("GET", path, administrator, headers=headers)

    assert (abroad.status_code, abroad.json()["code"]) == (404, "job_not_found")
