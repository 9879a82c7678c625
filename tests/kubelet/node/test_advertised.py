"""Labels that come from what the host holds, when a source of them fails."""

from collections.abc import Mapping

from applecart.kubelet.node.advertised import Advertised, LabelSource


class Source:
    def __init__(self, **labels: str) -> None:
        self.labels = labels
        self.fault: Exception | None = None

    def __call__(self) -> Mapping[str, str]:
        if self.fault:
            raise self.fault
        return self.labels


def test_a_failing_source_takes_nothing_from_the_others() -> None:
    """Incident 36: one probe that failed made every label of the others vanish from the Node."""
    goldens, caches = Source(golden="true"), Source(cache="true")
    advertised = Advertised([LabelSource("goldens", goldens, keeps_last=True), LabelSource("caches", caches)])
    assert advertised.labels() == {"golden": "true", "cache": "true"}
    caches.fault = OSError("the mount is gone")
    assert advertised.labels() == {"golden": "true"}
    caches.fault, goldens.fault = None, RuntimeError("a bug")
    assert advertised.labels() == {"golden": "true", "cache": "true"}


def test_a_source_that_keeps_its_last_word_keeps_the_newest_one() -> None:
    goldens = Source(old="true")
    advertised = Advertised([LabelSource("goldens", goldens, keeps_last=True)])
    advertised.labels()
    goldens.labels = {"new": "true"}
    advertised.labels()
    goldens.fault = OSError("gone")
    assert advertised.labels() == {"new": "true"}


def test_a_source_that_never_answered_offers_nothing() -> None:
    goldens = Source()
    goldens.fault = OSError("gone")
    assert Advertised([LabelSource("goldens", goldens, keeps_last=True)]).labels() == {}


def test_a_label_that_the_api_would_refuse_is_left_out() -> None:
    """One bad key fails the whole write of a Node."""
    caches = Source(good="true")
    caches.labels["bad key!"] = "true"
    assert Advertised([LabelSource("caches", caches)]).labels() == {"good": "true"}
