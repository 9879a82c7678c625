"""A registry that knows every image, and some better than others."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.sim.tart.locks import is_locked
from applecart.sim.tart.refusals import Refused
from applecart.sim.tart.registry import LAYERS, PATH_VARIABLE, Content, Registry, made_up_digest
from applecart.sim.tart.remote_names import RemoteName

NAME = RemoteName("ghcr.io", "a/b", "1")
DIGEST = "sha256:" + "b" * 64


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path, {})


def test_an_image_nobody_wrote_down_has_a_digest_of_its_own(registry: Registry) -> None:
    assert registry.resolve(NAME) == registry.resolve(NAME) == made_up_digest("ghcr.io/a/b:1")
    assert registry.resolve(RemoteName("ghcr.io", "a/b", "2")) != registry.resolve(NAME)
    assert registry.resolve(NAME.at(DIGEST)) == DIGEST


def test_a_tag_moves_and_stays_where_it_was_moved(registry: Registry) -> None:
    assert registry.move("ghcr.io/a/b:1", DIGEST) == registry.resolve(NAME) == DIGEST
    again = [registry.move("ghcr.io/a/b:1") for _ in range(3)]
    assert len({DIGEST, *again}) == 4
    assert registry.resolve(NAME) == again[-1]


def test_an_edit_is_alone_with_the_file(registry: Registry, tmp_path: Path) -> None:
    """Of twelve pushes, four at a time, one left no tag: it was read before and written after another's."""
    seen: list[bool] = []
    registry.edit(lambda content: seen.append(is_locked(tmp_path)))
    assert seen == [True]
    assert not is_locked(tmp_path)


def test_a_tag_moves_with_the_size_of_what_it_leads_to(registry: Registry) -> None:
    digest = registry.move("ghcr.io/a/b:1", size_bytes=7)
    assert (registry.resolve(NAME), sum(registry.layers(digest).values())) == (digest, 7)


@pytest.mark.parametrize("name", ["golden", f"ghcr.io/a/b@{DIGEST}", "ghcr.io/A/b:1"])
def test_only_a_tag_can_move(registry: Registry, name: str) -> None:
    with pytest.raises(Refused):
        registry.move(name)


@pytest.mark.parametrize("glob", ["ghcr.io/a/*", "ghcr.io/a/b:1", "*/b:*"])
def test_what_is_turned_away_is_named_by_glob(registry: Registry, glob: str) -> None:
    registry.edit(lambda content: content.missing.append(glob))
    with pytest.raises(Refused, match="code: 404"):
        registry.resolve(NAME)
    assert registry.resolve(RemoteName("quay.io", "x", "1"))


def test_two_hosts_share_a_registry_by_its_path(tmp_path: Path) -> None:
    env = {PATH_VARIABLE: str(tmp_path / "shared.json")}
    one, two = Registry(tmp_path / "one", env), Registry(tmp_path / "two", env)
    assert one.move("ghcr.io/a/b:1") == two.resolve(NAME)


@given(size=st.integers(1, 10**12))
def test_layers_add_up_to_the_image(size: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    registry = Registry(tmp_path_factory.mktemp("registry"), {})
    registry.edit(lambda content: content.sizes.update({DIGEST: size}))
    layers = registry.layers(DIGEST)
    assert len(layers) == LAYERS
    assert sum(layers.values()) == size


def test_a_wrong_registry_file_is_a_sentence(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "registry.json").write_text('{"tags": []}')
    with pytest.raises(Refused, match=r"registry\.json cannot be used"):
        registry.resolve(NAME)
    assert Content().tags == {}
