from pathlib import Path

import pytest

from applecart.errors import BadInput
from applecart.tart.run_options import RunOptions, Share

ENV = Share("env", Path("/var/lib/tart-userdata/vm-1"))
STATUS = Share("status", Path("/var/lib/tart-userdata/vm-1/status"), read_only=False)


def test_the_words_of_a_run_are_exact() -> None:
    """Incident 43: `:rw` on a share and caching on a disk made every VM exit at once."""
    assert RunOptions((ENV, STATUS)).words() == [
        "--no-graphics",
        "--root-disk-opts",
        "caching=cached",
        "--dir",
        "env:/var/lib/tart-userdata/vm-1:ro",
        "--dir",
        "status:/var/lib/tart-userdata/vm-1/status",
    ]
    assert RunOptions().environment() == {}


def test_a_vm_with_a_screen_prints_its_address_instead_of_opening_a_viewer() -> None:
    options = RunOptions(is_vnc=True)
    assert options.words() == ["--vnc-experimental", "--graphics", "--root-disk-opts", "caching=cached"]
    assert options.environment() == {"CI": "1"}


@pytest.mark.parametrize("share", [Share("", Path("/x")), Share("a:b", Path("/x")), Share("a", Path("/x:ro"))])
def test_a_share_that_tart_would_read_otherwise_is_refused(share: Share) -> None:
    with pytest.raises(BadInput, match="a colon separates its parts"):
        RunOptions((share,)).words()
