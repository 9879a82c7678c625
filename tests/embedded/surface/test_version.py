"""What the server says it is."""

from applecart.embedded.surface.version import version_document


def test_the_version_names_the_kubernetes_it_behaves_like_and_that_it_is_embedded() -> None:
    document = version_document()
    assert document["gitVersion"] == f"v{document['major']}.{document['minor']}.3+embedded"
    assert (document["emulationMajor"], document["emulationMinor"]) == (document["major"], document["minor"])
    assert int(document["minCompatibilityMinor"]) == int(document["minor"]) - 1


def test_every_value_is_text_and_the_platform_has_two_parts() -> None:
    document = version_document()
    assert all(isinstance(value, str) for value in document.values())
    assert document["platform"].count("/") == 1
