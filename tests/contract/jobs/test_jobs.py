"""Jobs over REST: lists and actions."""

import secrets


def test_jobs_are_listed_by_kind_and_state_in_pages(client, make_job):
    ids = {secrets.token_hex(16) for _ in range(3)}
    for job_id in ids:
        make_job(job_id, job_id)

    first = client.get("/v1/jobs?kind=archive&state=failed&limit=2").json()
    rest = client.get(
        "/v1/jobs",
        params={"kind": "archive", "state": "failed", "cursor": first["next_cursor"]},
    ).json()

    assert len(first["items"]) == 2
    assert ids <= {job["id"] for job in [*first["items"], *rest["items"]]}
    assert client.get("/v1/jobs?kind=replay&state=failed").json()["items"] == []


def test_cursor_of_another_list_is_rejected(client, make_job):
    for _ in range(2):
        make_job(secrets.token_hex(16), secrets.token_hex(16))
    page = client.get("/v1/jobs?kind=archive&limit=1").json()

    answer = client.get("/v1/jobs", params={"state": "failed", "cursor": page["next_cursor"]})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


def test_failed_job_is_shown_with_parts_retried_and_cancelled(client, make_job):
    job_id = secrets.token_hex(16)
    make_job(job_id, job_id)

    shown = client.get(f"/v1/jobs/{job_id}").json()
    retried = client.post(f"/v1/jobs/{job_id}/retry").json()
    cancelled = client.post(f"/v1/jobs/{job_id}/cancel").json()

    assert (shown["state"], shown["parts"][0]["position"]) == ("failed", 5000)
    assert (retried["state"], retried["failures"]) == ("queued", 0)
    assert cancelled["state"] == "cancelled"


def test_action_not_allowed_in_state_returns_conflict(client, make_job):
    job_id = secrets.token_hex(16)
    make_job(job_id, job_id)

    answer = client.post(f"/v1/jobs/{job_id}/cancel")

    assert (answer.status_code, answer.json()["code"]) == (409, "job_refused")
    assert "failed" in answer.json()["detail"]


def test_unknown_or_foreign_job_is_not_found(client, make_job):
    job_id = secrets.token_hex(16)
    make_job(job_id, job_id, namespace="elsewhere")

    for path in (f"/v1/jobs/{job_id}", "/v1/jobs/none"):
        assert client.get(path).json()["code"] == "job_not_found"
    assert client.post(f"/v1/jobs/{job_id}/retry").status_code == 404


def test_invalid_list_filter_is_rejected(client):
    answer = client.get("/v1/jobs?kind=laundry")

    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")
