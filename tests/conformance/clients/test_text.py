"""Only what is accidental is replaced."""

import pytest

from tests.conformance.clients.text import normalise


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("p   0/1     Pending   0          12s", "p 0/1 Pending 0 <age>"),
        ("p   0/1     Pending   0          3m5s", "p 0/1 Pending 0 <age>"),
        ("uid: 2f0c1f0e-7a33-4c52-9f6e-1c2d3e4f5a6b", "uid: <uid>"),
        ('  resourceVersion: "1078"', '  resourceVersion: "<rv>"'),
        ('"resourceVersion": "1078"', '"resourceVersion": "<rv>"'),
        ("  Resource Version:  269", "  Resource Version: <rv>"),
        ("creationTimestamp: 2026-11-16T11:45:12Z", "creationTimestamp: <time>"),
        ("CreationTimestamp:  Mon, 16 Nov 2026 11:45:12 +0000", "CreationTimestamp: <time>"),
        ("is running at https://127.0.0.1:45051", "is running at https://<address>"),
        ("+++ /tmp/MERGED-123/v1.ConfigMap.n.a", "+++ /tmp/MERGED/v1.ConfigMap.n.a"),
        ('patch: Invalid value: "map[a:1]": no', "patch: Invalid value: <object>: no"),
        ('patch: Invalid value: "{\\"a\\":1}": no', "patch: Invalid value: <object>: no"),
        ('spec.size: Invalid value: "-1": no', 'spec.size: Invalid value: "-1": no'),
        ("replicas: 12\nage", "replicas: 12\nage"),
        ("image:1s example.test/10s", "image:1s example.test/10s"),
        ('E1116 12:15:30.1 7 reflector.go:227] "Failed to watch"\nnext', "next"),
        ('E1116 12:15:30.1 7 memcache.go:265] "Unhandled"\nnext', '<klog> memcache.go:265] "Unhandled"\nnext'),
        ("Headers   end   \nnext", "Headers end\nnext"),
    ],
)
def test_a_text_is_normalised(text: str, normal: str) -> None:
    assert normalise(text) == normal


def test_a_normal_text_stays_as_it_is() -> None:
    text = normalise("p 0/1 Pending 0 12s\nuid: 2f0c1f0e-7a33-4c52-9f6e-1c2d3e4f5a6b\n")
    assert normalise(text) == text
