"""Strategic merge patches, step by step beside a real API server."""

import pytest

from tests.embedded.patching.real_api import RealApi
from tests.embedded.patching.steps import SUBJECTS, assert_equal, ours, really
from tests.embedded.patching.strategic_cases import STRATEGIC_CASES

pytestmark = [pytest.mark.kubernetes, pytest.mark.real_time]


@pytest.mark.parametrize("title", STRATEGIC_CASES)
def test_every_patch_comes_out_as_on_a_real_server(title: str, real_api: RealApi, namespace: str) -> None:
    case = STRATEGIC_CASES[title]
    subject = SUBJECTS[case.kind]
    real_api.call("DELETE", "/api/v1/nodes/subject")
    live = None
    for step in case.setup:
        live = really(real_api, subject, namespace, "subject", step).document
        assert live is not None
    for step in case.steps:
        expected = really(real_api, subject, namespace, "subject", step)
        got = ours(subject, live, step)
        assert_equal(got, expected, with_owners=False)
        live = expected.document or live
