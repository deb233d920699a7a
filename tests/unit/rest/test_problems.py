"""The error table of the native API."""

import json

import pytest

from api.errors import HttpError, HttpErrorCode
from api.native.problems import CODES, code_of, item_error, problem, status_of
from storage.domain.errors import (
    ErrorCode,
    OffsetExpired,
    OutcomeUnknown,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
    ValidationFailed,
    error_types,
)


def problem_body(error: Exception) -> dict[str, object]:
    answer: dict[str, object] = json.loads(problem(error, instance="/x", request_id="r").body)
    return answer


def test_every_error_has_a_sentence():
    for code in error_types():
        assert item_error(code).detail.endswith(".")


@pytest.mark.parametrize("code", CODES)
def test_status_agrees_with_retryable(code):
    retry_later = status_of(code) in (429, 503, 504)

    assert code.retryable == retry_later


def test_outcome_is_unknown_only_for_timeout_and_internal_error():
    unknown = [code for code in CODES if not code.nothing_happened]

    assert set(unknown) == {ErrorCode.STORAGE_TIMEOUT, HttpErrorCode.INTERNAL_ERROR}


@pytest.mark.parametrize("kind", [StorageUnavailable, StorageFull, StorageBusy])
def test_store_refusal_is_503_and_retryable(kind):
    answer = problem(kind(), instance="/x", request_id="r")

    assert answer.status == 503
    assert (b"retry-after", b"1") in answer.headers
    assert problem_body(kind())["retryable"] is True
    assert "outcome" not in problem_body(kind())


def test_store_timeout_leaves_outcome_unknown():
    answer = problem_body(OutcomeUnknown())

    assert answer["status"] == 504
    assert answer["outcome"] == "unknown"
    assert answer["retryable"] is True


def test_error_facts_become_members():
    assert problem_body(OffsetExpired(earliest_offset=7))["earliest_offset"] == 7


def test_faults_become_errors_with_pointers():
    answer = problem_body(ValidationFailed.at("/a/b", "must not be", "invalid"))

    assert answer["errors"] == [{"pointer": "/a/b", "detail": "must not be", "code": "invalid"}]


def test_unexpected_error_hides_its_message():
    answer = problem_body(RuntimeError("the password is 1234"))

    assert answer["code"] == "internal_error"
    assert "1234" not in str(answer)


def test_headers_of_refusal_are_sent():
    error = HttpError(HttpErrorCode.METHOD_NOT_ALLOWED, "no", ((b"allow", b"GET"),))

    assert code_of(error) is HttpErrorCode.METHOD_NOT_ALLOWED
    assert problem(error, instance="/x", request_id="r").headers == ((b"allow", b"GET"),)
