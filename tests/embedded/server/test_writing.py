"""What is said of a patch before anybody looks at the object."""

import pytest

from applecart.embedded.refusals import Refusal
from applecart.embedded.server.writing import MERGE_PATCH, STRATEGIC_PATCH, read_patch

NO_OBJECT = "json: cannot unmarshal {} into Go value of type map[string]interface {{}}"


@pytest.mark.parametrize(
    ("given", "body", "text"),
    [
        (MERGE_PATCH, b"null", "Invalid JSON Patch"),
        (MERGE_PATCH, b"[]", f"error decoding patch: {NO_OBJECT.format('array')}"),
        (MERGE_PATCH, b'"x"', f"error decoding patch: {NO_OBJECT.format('string')}"),
        (STRATEGIC_PATCH, b"[]", NO_OBJECT.format("array")),
        (STRATEGIC_PATCH, b"5", NO_OBJECT.format("number")),
    ],
)
def test_a_patch_that_is_no_object_is_refused(given: str, body: bytes, text: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_patch(given, body)
    assert (refused.value.code, refused.value.message) == (400, text)
