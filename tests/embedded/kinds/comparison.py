"""Comparing an outcome here with a real server's, without what may differ between them.

Accepted differences: a struct inside a message is shown as the API writes it, not as the server's own fields are called; a
cause that a real server finds twice is told once; the changed lines after a refused Pod update are those of the API's fields.
"""

import json
import re
from typing import Any

from applecart.embedded.refusals import Refusal
from tests.embedded.kinds.documents import created, normal, updated

_struct_begins = re.compile(r'(?<= value: )(\{"|\[\{)').search

Outcome = dict[str, Any]


def outcome_of_create(document: dict[str, Any], namespace: str) -> Outcome:
    try:
        return {"document": normal(created(document, namespace))}
    except Refusal as refusal:
        return comparable(refusal.document())


def outcome_of_update(new: dict[str, Any], old: dict[str, Any], namespace: str, subresource: str = "") -> Outcome:
    try:
        return {"document": normal(updated(new, created(old, namespace), subresource))}
    except Refusal as refusal:
        return comparable(refusal.document())


def outcome_of_answer(code: int, answer: dict[str, Any]) -> Outcome:
    return {"document": normal(answer)} if code < 300 else comparable(answer)


def comparable(status: dict[str, Any]) -> Outcome:
    details = json.loads(json.dumps(status.get("details")))
    if details and details.get("causes"):
        causes = [{**cause, "message": _plain(cause["message"])} for cause in details["causes"]]
        details["causes"] = [cause for index, cause in enumerate(causes) if cause not in causes[:index]]
    return {
        "code": status["code"],
        "reason": status.get("reason"),
        "message": _plain(status["message"]),
        "details": details,
    }


def _plain(message: str) -> str:
    found = _struct_begins(message)
    while found is not None:
        _struct, end = json.JSONDecoder().raw_decode(message, found.start())
        message = f"{message[: found.start()]}STRUCT{message[end:]}"
        found = _struct_begins(message)
    return message.split("\n")[0]
