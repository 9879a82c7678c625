"""Answers that say no, and the classes they become."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import BadInput, ControlPlaneFault, Permanent, Transient
from applecart.kube import errors
from applecart.kube.errors import SHOWN_BODY_CHARS, ApiError, Status, error_from_answer, error_from_status

CALL = "GET /api/v1/namespaces/ci/pods/a"


def answer(code: int, reason: str = "", message: str = "no", **details: object) -> ApiError:
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code, "details": details}
    return error_from_answer(code, json.dumps(body).encode(), CALL)


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.MethodNotAllowed),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Expired),
        (410, "Gone", errors.Expired),
        (413, "RequestEntityTooLarge", errors.TooLarge),
        (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerFault),
        (500, "ServerTimeout", errors.ServerFault),
        (503, "ServiceUnavailable", errors.ServerFault),
        (504, "Timeout", errors.ServerFault),
        # No reason, or one that we do not know: the code decides.
        (409, "", errors.Conflict),
        (410, "", errors.Expired),
        (422, "SomethingNew", errors.Invalid),
        (418, "", errors.BadRequest),
        (502, "", errors.ServerFault),
        (599, "SomethingNew", errors.ServerFault),
    ],
)
def test_the_reason_picks_the_class_and_else_the_code_does(code: int, reason: str, expected: type[ApiError]) -> None:
    assert type(answer(code, reason)) is expected


@pytest.mark.parametrize(
    ("code", "means"),
    [
        (400, Permanent),
        (401, ControlPlaneFault),
        (403, ControlPlaneFault),
        (404, Permanent),
        (409, Transient),
        (410, Transient),
        (413, Permanent),
        (422, BadInput),
        (429, Transient),
        (500, Transient),
    ],
)
def test_every_class_says_whether_trying_again_can_help(code: int, means: type[Exception]) -> None:
    assert isinstance(answer(code), means)


@given(st.integers(400, 599), st.text(max_size=30))
def test_a_refusal_is_either_transient_or_permanent_and_never_both(code: int, reason: str) -> None:
    error = answer(code, reason)
    assert isinstance(error, Transient) is not isinstance(error, Permanent)


@given(st.integers(400, 599), st.binary(max_size=500))
def test_an_answer_that_is_no_status_still_becomes_a_sentence_about_the_call(code: int, body: bytes) -> None:
    text = str(error_from_answer(code, body, CALL))
    assert text.startswith(f"{CALL}: ")
    assert text.endswith(f" ({code})")


def test_a_proxys_page_is_shown_in_short() -> None:
    error = error_from_answer(502, b"<html>\n  <h1>Bad   gateway</h1>" + b"x" * 5000, CALL)
    assert isinstance(error, errors.ServerFault)
    assert "<html> <h1>Bad gateway</h1>" in str(error)
    assert len(error.status.message) == SHOWN_BODY_CHARS


def test_an_empty_answer_says_so() -> None:
    assert "the server sent no reason" in str(error_from_answer(500, b"", CALL))


def test_the_code_of_the_answer_beats_the_one_inside_it() -> None:
    """A proxy may wrap a Status of its own into another answer."""
    error = error_from_answer(503, b'{"kind":"Status","code":200,"message":"odd"}', CALL)
    assert error.status.code == 503
    assert isinstance(error, errors.ServerFault)


def test_an_invalid_object_names_its_fields() -> None:
    causes = [{"field": "spec.os", "message": "bad"}, {"message": "no field"}, {"field": "spec.zone", "message": "bad"}]
    assert answer(422, "Invalid", causes=causes).fields == ("spec.os", "spec.zone")
    assert answer(422, "Invalid").fields == ()


def test_the_wish_to_wait_is_read_from_the_details_when_no_header_says_it() -> None:
    assert answer(429, "TooManyRequests", retryAfterSeconds=7).retry_after_s == 7
    assert answer(429, "TooManyRequests").retry_after_s is None
    body = json.dumps({"code": 429, "details": {"retryAfterSeconds": 7}}).encode()
    assert error_from_answer(429, body, CALL, 2).retry_after_s == 2


def test_a_status_without_words_still_says_something() -> None:
    assert str(error_from_status(Status(code=404), CALL)) == f"{CALL}: no message (404)"
