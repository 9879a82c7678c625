"""Scenes to plan on, by hand and by chance."""

from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import strategies as st

from applecart.api import names
from applecart.api.names import golden_vm
from applecart.clock import EPOCH
from applecart.kubelet.garbage.scene import Found, PodHere, Scene
from applecart.tart.cached_images import CachedImage
from applecart.tart.home import LocalVm
from applecart.tart.marks import GoldenMark, Mark, PodMark, ScratchMark

NOW = EPOCH + timedelta(days=10)
REPOSITORY = "ghcr.io/acme/macos"
NOTHING_RUNS: frozenset[str] = frozenset()


def digest(letter: str, repository: str = REPOSITORY) -> str:
    return f"{repository}@sha256:{letter * 64}"


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def vm(name: str, mark: Mark | None = None, *, is_whole: bool = True) -> LocalVm:
    return LocalVm(name, Path("/store/vms") / name, 1 << 30, ago(1), mark, is_whole)


def pod_vm(uid: str, pod: str = "", namespace: str = "ci") -> LocalVm:
    pod = pod or uid
    return vm(names.pod_vm(namespace, pod), PodMark(uid, namespace, pod, f"{REPOSITORY}:15", digest("a"), ago(1)))


def golden(letter: str, used_hours_ago: float, *images: str, is_whole: bool = True) -> LocalVm:
    mark = GoldenMark(digest(letter), images, ago(used_hours_ago), ago(used_hours_ago))
    return vm(golden_vm(mark.digest), mark, is_whole=is_whole)


def cached(letter: str, used_hours_ago: float = 1, *tags: str) -> CachedImage:
    return CachedImage(digest(letter), tags, 1 << 30, ago(used_hours_ago), False)


def scene(**parts: object) -> Scene:
    return Scene(**{"now": NOW, "named_by_processes": NOTHING_RUNS, **parts})  # type: ignore[arg-type]


_letters = st.sampled_from("abcde")
_images = st.one_of(
    st.sampled_from(["15", "latest"]).map(lambda tag: f"{REPOSITORY}:{tag}"),
    _letters.map(digest),
    st.just(REPOSITORY),
    st.just("not an image"),
)
_uids = st.sampled_from(["u1", "u2", "u3"])
_times = st.integers(0, 24 * 12).map(ago)
_pod_marks = st.builds(PodMark, _uids, st.just("ci"), st.just("job"), _images, _letters.map(digest), _times)
_digests = _letters.map(digest) | st.sampled_from(["", "a b", "ghcr.io/acme/macos:15"])
_golden_marks = st.builds(GoldenMark, _digests, st.lists(_images, max_size=2).map(tuple), _times, _times)
_marks = st.none() | _pod_marks | _golden_marks | st.builds(ScratchMark, _times)


@st.composite
def _vms(draw: st.DrawFn) -> LocalVm:
    mark = draw(_marks)
    own = golden_vm(mark.digest) if isinstance(mark, GoldenMark) and mark.digest not in ("", "a b") else ""
    others = st.sampled_from(["ci-job", "ci-job-2", "builder", "applecart-scratch-mac-1", golden_vm(digest("a"))])
    return vm(draw(st.just(own) if own and draw(st.booleans()) else others), mark, is_whole=draw(st.booleans()))


_pods = st.builds(PodHere, _uids, _images, st.just("") | _letters.map(digest), st.booleans())
_tags = st.lists(st.sampled_from(["15", "latest"]), max_size=2, unique=True).map(tuple)
_cached = st.builds(CachedImage, _letters.map(digest), _tags, st.just(1), _times, st.booleans())
_some_names = st.frozensets(
    st.sampled_from(["ci-job", "ci-job-2", "builder", *(golden_vm(digest(letter)) for letter in "abc"), f"{REPOSITORY}:15"])
)
_found = st.builds(Found, st.sampled_from(["ci-job", "builder", "x.log", "y.log.1"]).map(Path), _times, st.integers(0, 1 << 30))

scenes = st.builds(
    Scene,
    now=st.just(NOW),
    free_percent=st.none() | st.floats(0, 100),
    vms=st.lists(_vms(), max_size=6, unique_by=lambda vm: vm.name).map(tuple),
    images=st.lists(_cached, max_size=5, unique_by=lambda image: image.name).map(tuple),
    pulled=st.frozensets(_letters.map(digest)),
    pods=st.lists(_pods, max_size=3).map(tuple),
    held=st.frozensets(_uids),
    entry_vms=_some_names,
    named_by_processes=st.none() | _some_names,
    busy_vms=_some_names,
    busy_images=st.frozensets(_letters.map(digest)),
    userdata=st.lists(_found, max_size=3).map(tuple),
    logs=st.lists(_found, max_size=3).map(tuple),
)
