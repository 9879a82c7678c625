"""Merging kubeconfig files by kubectl's rules, and refusing what is none."""

import contextlib
import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.clock import SystemClock
from applecart.errors import BadInput
from applecart.kube.auth.context import resolve
from applecart.kube.auth.kubeconfig import MAX_FILE_BYTES, default_path, listed_paths, load, merge, parse
from tests.kube.kubeconfigs import kubeconfig, write

FILE = Path("/fleet/config")


def cluster_at(server: str, current: str = "") -> dict[str, Any]:
    return {"current-context": current, "clusters": [{"name": "farm", "cluster": {"server": server}}]}


def test_the_first_file_wins_a_cluster_that_two_files_name(tmp_path: Path) -> None:
    first = write(tmp_path / "first", cluster_at("https://first"))
    second = write(tmp_path / "second", cluster_at("https://second"))
    assert load([first, second]).clusters["farm"].fields == {"server": "https://first"}


def test_the_first_file_that_sets_a_current_context_wins_it(tmp_path: Path) -> None:
    silent = write(tmp_path / "silent", cluster_at("https://a"))
    second = write(tmp_path / "second", cluster_at("https://b", "second"))
    third = write(tmp_path / "third", cluster_at("https://c", "third"))
    assert load([silent, second, third]).current_context == "second"


def test_a_context_may_name_a_cluster_of_another_file(tmp_path: Path) -> None:
    contexts = write(tmp_path / "contexts", {**kubeconfig(), "clusters": None})
    clusters = write(tmp_path / "clusters", cluster_at("https://elsewhere:6443"))
    assert resolve(load([contexts, clusters]), SystemClock(), {}).endpoint.server == "https://elsewhere:6443"


def test_a_missing_file_of_a_list_is_skipped(tmp_path: Path) -> None:
    there = write(tmp_path / "there", kubeconfig())
    assert load([tmp_path / "gone", there]).files == (there,)


def test_a_name_that_no_file_can_have_is_skipped_as_missing(tmp_path: Path) -> None:
    there = write(tmp_path / "there", kubeconfig())
    assert load([tmp_path / ("x" * 5000), there]).files == (there,)


def test_a_list_of_which_no_file_exists_is_told_with_its_files(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=rf"KUBECONFIG lists exists \({tmp_path}/a, {tmp_path}/b\); correct or unset it"):
        load([tmp_path / "a", tmp_path / "b"])


def test_a_single_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"{tmp_path}/gone does not exist"):
        load([tmp_path / "gone"])


def test_a_folder_in_place_of_a_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot be read \(Is a directory\)"):
        load([tmp_path])


def test_a_huge_file_is_refused_without_reading_it_whole(tmp_path: Path) -> None:
    huge = tmp_path / "disk.img"
    with huge.open("wb") as file:
        file.truncate(MAX_FILE_BYTES * 64)
    with pytest.raises(BadInput, match="larger than 16 MiB"):
        load([huge])


@pytest.mark.parametrize(
    ("variable", "paths"),
    [
        (None, []),
        ("", []),
        (":::", []),
        ("/a", ["/a"]),
        ("/a:/b", ["/a", "/b"]),
        ("/a::/b:/a", ["/a", "/b"]),
    ],
)
def test_the_variable_lists_each_file_once_and_in_order(variable: str | None, paths: list[str]) -> None:
    environ = {} if variable is None else {"KUBECONFIG": variable}
    assert listed_paths(environ) == [Path(path) for path in paths]


def test_the_default_file_is_in_the_home_folder() -> None:
    assert default_path(Path("/home/ci")) == Path("/home/ci/.kube/config")


def test_an_empty_file_names_nothing() -> None:
    assert parse(b"", FILE).contexts == {}


def test_sections_that_kubectl_writes_as_null_are_empty() -> None:
    assert parse(b"clusters: null\nusers: null\ncontexts: null\ncurrent-context: ''\n", FILE).clusters == {}


def test_a_file_that_is_relative_is_remembered_by_its_full_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "config", kubeconfig())
    monkeypatch.chdir(tmp_path)
    assert load([Path("config")]).clusters["farm"].file == tmp_path / "config"


def test_a_token_that_looks_like_a_date_stays_text() -> None:
    config = parse(b"users: [{name: robot, user: {token: 2026-01-01}}]", FILE)
    assert config.users["robot"].fields == {"token": "2026-01-01"}


BROKEN: list[tuple[str, str]] = [
    ("clusters: [", r"/fleet/config is not valid YAML \(line \d+, column \d+\); correct it there"),
    ("a: b: c", r"not valid YAML \(line 1, column \d\)"),
    ("\x00", "is not valid YAML"),
    ("!!int foo", "is not valid YAML"),
    ("!!timestamp foo", "is not valid YAML"),
    ("!!python/object:os.system {}", "is not valid YAML"),
    ("a: &loop {b: *loop}\nkind: *gone", "is not valid YAML"),
    ("--- a\n--- b", "is not valid YAML"),
    ("[" * 100_000, "nests more than 64 levels deep"),
    ("just text", "is not a kubeconfig; it must hold the fields clusters, users and contexts"),
    ("[1, 2]", "is not a kubeconfig"),
    ("kind: Pod", "its field kind must be Config"),
    ("current-context: 7", "field current-context in /fleet/config must be text"),
    ("clusters: {}", r"field clusters in /fleet/config must be a list"),
    ("users: [robot]", r"field users\[0\] in /fleet/config has no name"),
    ("users: [{name: 7}]", r"field users\[0\] in /fleet/config has no name"),
    ("users: [{name: a}, {name: a}]", r'field users in /fleet/config holds user "a" twice'),
]


@pytest.mark.parametrize(("text", "sentence"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_one_sentence_that_names_it(text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        parse(text.encode(), FILE)
    assert "\n" not in str(caught.value)


def test_a_broken_file_is_never_quoted() -> None:
    with pytest.raises(BadInput) as caught:
        parse(b"users: [{name: robot, user: {token: 'hunter2hunter2}}]", FILE)
    assert "hunter2" not in str(caught.value)


NAMES = st.sampled_from("abcd")
FILES = st.lists(st.tuples(st.dictionaries(NAMES, st.integers(0, 9)), st.sampled_from(["", "a", "b"])), min_size=1, max_size=5)


@given(FILES)
def test_merging_is_looking_each_name_up_in_the_files_in_order(files: list[tuple[dict[str, int], str]]) -> None:
    configs = []
    for number, (clusters, current) in enumerate(files):
        items = [{"name": name, "cluster": {"server": f"https://{value}"}} for name, value in clusters.items()]
        text = yaml.safe_dump({"clusters": items, "current-context": current})
        configs.append(parse(text.encode(), Path(f"/file{number}")))
    merged = merge(configs)
    for name in "abcd":
        expected = next((config.clusters[name] for config in configs if name in config.clusters), None)
        assert merged.clusters.get(name) == expected
    assert merged.current_context == next((config.current_context for config in configs if config.current_context), "")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=4) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
FULL = kubeconfig(
    cluster={
        "server": "https://10.0.0.1:6443",
        "certificate-authority-data": "",
        "tls-server-name": "api",
        "insecure-skip-tls-verify": False,
        "proxy-url": "http://proxy:3128",
        "disable-compression": True,
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
    },
    user={
        "token": "",
        "tokenFile": "",
        "username": "",
        "password": "",
        "client-certificate": "",
        "client-certificate-data": "",
        "client-key": "",
        "client-key-data": "",
        "as": "someone",
        "as-groups": ["g"],
        "as-uid": "1",
        "as-user-extra": {"scope": ["a"]},
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "args": ["a"],
            "env": [{"name": "A", "value": "b"}],
            "interactiveMode": "Never",
            "installHint": "install it",
            "provideClusterInfo": True,
        },
    },
    context={"cluster": "farm", "user": "robot", "namespace": "ci"},
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


PLACES = places(FULL)


def with_junk(document: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    changed = copy.deepcopy(document)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = junk
    return changed


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(PLACES), JUNK, st.sampled_from(PLACES), JUNK)
def test_junk_in_any_place_is_read_or_is_one_sentence(
    place: tuple[Any, ...], junk: Any, other_place: tuple[Any, ...], other_junk: Any
) -> None:
    document = with_junk(FULL, place, junk)
    with contextlib.suppress(KeyError, IndexError, TypeError):  # the first change may have removed the second place
        document = with_junk(document, other_place, other_junk)
    assert is_one_sentence(complaint(yaml.safe_dump(document).encode()))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet="[]{}:-&*!|>'\"\n abc%@`,?#", max_size=80).map(str.encode))
def test_bytes_that_are_no_kubeconfig_are_one_sentence(text: bytes) -> None:
    assert is_one_sentence(complaint(text))


def complaint(text: bytes) -> str | None:
    """What is said about a file; any error but BadInput fails the test."""
    try:
        resolve(parse(text, FILE), SystemClock(), {})
    except BadInput as error:
        return str(error)
    return None


def is_one_sentence(text: str | None) -> bool:
    return text is None or ("\n" not in text and "/fleet/config" in text)
