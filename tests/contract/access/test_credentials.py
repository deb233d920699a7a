"""Credentials over REST in open mode: creation, display, changes and revocation."""

import pytest

from storage.domain.access.credentials import parse_key

RIGHTS = {
    "roles": ["viewer"],
    "grants": [{"effect": "allow", "actions": ["queue:send"], "resources": ["orders-*"]}],
    "rates": {"calls_per_second": 50},
    "expires_at": "2100-01-01T00:00:00Z",
}


@pytest.fixture
def key(client, name):
    """A new key, as its creator sees it."""
    return client.post("/v1/keys", json={"name": name, **RIGHTS}).json()


def test_key_is_shown_in_full_once(client, key, name):
    answer = client.get(f"/v1/keys/{key['id']}")

    shown = answer.json()
    assert parse_key(key["secret"]) is not None
    assert shown == {field: value for field, value in key.items() if field != "secret"}
    assert (shown["name"], shown["roles"], shown["grants"]) == (name, ["viewer"], RIGHTS["grants"])
    assert shown["rates"]["calls_per_second"] == 50
    assert shown["expires_at"] == "2100-01-01T00:00:00.000Z"
    assert answer.headers["etag"] == '"v1"'


def test_response_with_secret_is_not_cacheable(client, key, name):
    made = client.post("/v1/keys", json={"name": name, "kind": "access_key", "roles": ["producer"]})
    rotated = client.post(f"/v1/keys/{key['id']}/rotations")

    assert made.json()["id"].startswith("MSAK")
    assert rotated.json()["family"] == key["id"]
    assert {one.headers["cache-control"] for one in (made, rotated)} == {"no-store"}


def test_patch_changes_only_named_fields(client, key):
    path = f"/v1/keys/{key['id']}"

    changed = client.patch(
        path, json={"rates": {"bytes_per_second": 9}, "expires_at": None, "roles": ["operator"]}
    ).json()
    stale = client.patch(path, json={"roles": []}, headers={"if-match": '"v1"'})
    nothing = client.patch(path, json={"roles": None, "grants": None})
    unlimited = client.patch(path, json={"rates": None}, headers={"if-match": '"v2"'}).json()

    assert changed["rates"]["calls_per_second"] == 50
    assert changed["rates"]["bytes_per_second"] == 9
    assert (changed["roles"], changed["expires_at"], changed["version"]) == (["operator"], None, 2)
    assert changed["grants"] == RIGHTS["grants"]
    assert stale.status_code == 412
    assert (nothing.status_code, nothing.json()["errors"][0]["pointer"]) == (422, "/roles")
    assert (unlimited["rates"], unlimited["version"]) == (None, 3)


def test_list_is_filtered_by_name_and_paged(client, name):
    ids = {
        client.post("/v1/keys", json={"name": name, "roles": ["viewer"]}).json()["id"]
        for _ in range(3)
    }

    first = client.get("/v1/keys", params={"name": name, "limit": 2}).json()
    cursor = {"name": name, "limit": 2, "cursor": first["next_cursor"]}
    second = client.get("/v1/keys", params=cursor).json()
    another = client.get("/v1/keys", params={**cursor, "name": "other"})

    assert {one["id"] for one in first["items"] + second["items"]} == ids
    assert second["next_cursor"] is None
    assert another.json()["code"] == "invalid_cursor"


def test_revoked_key_is_shown_and_cannot_change(client, key):
    path = f"/v1/keys/{key['id']}"

    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 204

    assert client.get(path).json()["revoked_at"] is not None
    for refused in (client.patch(path, json={"roles": []}), client.post(f"{path}/rotations")):
        assert (refused.status_code, refused.json()["code"]) == (409, "key_refused")


@pytest.mark.parametrize("key_id", ["nosuchkey123", "x", "..%2f", "MSAK" + "A" * 16, "%00" * 12])
def test_unknown_key_is_not_found(client, key_id):
    answer = client.get(f"/v1/keys/{key_id}")

    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"roles": ["viewer"]}, "/name"),
        ({"name": "a/b", "roles": ["viewer"]}, "/name"),
        ({"name": "a", "roles": ["owner"]}, "/roles/0"),
        ({"name": "a", "roles": ["viewer"], "kind": "token"}, "/kind"),
        ({"name": "a", "roles": ["viewer"], "typo": 1}, "/typo"),
        ({"name": "a", "roles": ["viewer"], "expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "a", "roles": ["viewer"], "expires_at": "tomorrow"}, "/expires_at"),
        ({"name": "a", "roles": ["viewer"], "expires_at": "2100-01-01T00:00:00"}, "/expires_at"),
        ({"name": "a", "grants": [{"effect": "maybe", "actions": ["*"]}]}, "/grants/0/effect"),
        ({"name": "a", "grants": [{"effect": "allow", "actions": ["x"]}]}, "/grants/0/actions/0"),
        (
            {"name": "a", "roles": ["viewer"], "rates": {"calls_per_second": -1}},
            "/rates/calls_per_second",
        ),
    ],
)
def test_invalid_key_is_rejected_with_pointer(client, body, pointer):
    answer = client.post("/v1/keys", json=body)

    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_browser_logs_in_and_out_with_host_only_cookie(client, key):
    answer = client.post("/v1/sessions", headers={"authorization": f"Bearer {key['secret']}"})
    word, *attributes = answer.headers["set-cookie"].split("; ")

    out = client.delete("/v1/sessions", headers={"cookie": word})

    assert answer.status_code == 201
    assert word.startswith("ms_session=mss_")
    assert set(attributes) == {"Path=/", "Max-Age=86400", "HttpOnly", "SameSite=Lax"}
    assert "mss_" not in answer.text
    assert (out.status_code, out.headers["set-cookie"].split("; ")[0]) == (204, "ms_session=")


@pytest.mark.parametrize("word", ["", "msk_nonsense"])
def test_login_without_key_is_rejected(client, word):
    answer = client.post("/v1/sessions", json={"api_key": word})

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "set-cookie" not in answer.headers


def test_audit_log_shows_rights_of_key_and_no_secret(client, key):
    client.patch(f"/v1/keys/{key['id']}", json={"roles": ["admin"]})
    rotated = client.post(f"/v1/keys/{key['id']}/rotations").json()

    entries = client.get("/v1/audit", params={"limit": 10}).json()["items"]
    returned_entries = {entry["operation"]: entry for entry in reversed(entries)}

    assert returned_entries["create_key"]["after"]["grants"] == RIGHTS["grants"]
    assert returned_entries["change_key"]["before"]["rights"]["roles"] == ["viewer"]
    assert returned_entries["change_key"]["after"]["rights"]["roles"] == ["admin"]
    assert returned_entries["rotate_key"]["after"]["id"] == rotated["id"]
    for secret in (key["secret"], rotated["secret"]):
        assert secret not in str(entries)
        assert secret.split("_")[2] not in str(entries)
