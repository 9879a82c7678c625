"""What an informer remembers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.core import ConfigMap
from applecart.api.meta import Key, ObjectMeta
from applecart.kube.cache import Cache, Change, Replacement


def config_map(name: str, revision: int = 1, uid: str = "", color: str = "") -> ConfigMap:
    labels = {"color": color} if color else {}
    metadata = ObjectMeta(name=name, namespace="ci", uid=uid or f"uid-{name}", resource_version=str(revision), labels=labels)
    return ConfigMap(metadata=metadata)


def by_color(obj: ConfigMap) -> tuple[str, ...]:
    return tuple(obj.labels.get("color", "").split("+")) if obj.labels else ()


def key(name: str) -> Key:
    return Key("ci", name)


def test_a_new_object_is_an_addition() -> None:
    cache: Cache[ConfigMap] = Cache()
    a = config_map("a")
    assert cache.put(a) == [Change(key("a"), None, a)]
    assert cache.get(key("a")) is a


def test_the_same_revision_twice_is_no_change() -> None:
    cache: Cache[ConfigMap] = Cache()
    cache.put(config_map("a"))
    assert cache.put(config_map("a")) == []


def test_another_uid_under_the_same_name_is_a_deletion_and_an_addition() -> None:
    cache: Cache[ConfigMap] = Cache()
    old, new = config_map("a", 1, uid="first"), config_map("a", 2, uid="second")
    cache.put(old)
    assert cache.put(new) == [Change(key("a"), old, None), Change(key("a"), None, new)]


def test_a_deletion_reports_the_final_state_where_the_api_told_it() -> None:
    cache: Cache[ConfigMap] = Cache()
    known, final = config_map("a", 1), config_map("a", 2)
    cache.put(known)
    assert cache.remove(key("a"), final) == [Change(key("a"), final, None)]


def test_a_deletion_that_names_another_life_of_the_object_reports_the_known_one() -> None:
    cache: Cache[ConfigMap] = Cache()
    known = config_map("a", 1, uid="first")
    cache.put(known)
    assert cache.remove(key("a"), config_map("a", 2, uid="second")) == [Change(key("a"), known, None)]


def test_removing_what_is_not_there_is_no_change() -> None:
    cache: Cache[ConfigMap] = Cache()
    assert cache.remove(key("a")) == []


def test_an_index_follows_its_objects() -> None:
    cache: Cache[ConfigMap] = Cache()
    cache.add_index("color", by_color)
    cache.put(config_map("a", 1, color="red"))
    cache.put(config_map("b", 1, color="red+blue"))
    cache.put(config_map("a", 2, color="blue"))
    assert [obj.name for obj in cache.by_index("color", "red")] == ["b"]
    assert sorted(obj.name for obj in cache.by_index("color", "blue")) == ["a", "b"]
    cache.remove(key("b"))
    assert cache.by_index("color", "red") == []


def test_an_index_whose_function_says_another_thing_the_next_time_follows_its_objects() -> None:
    """One that had failed on the old object broke on the new one, and the change was told to nobody, ever."""
    said = [("red",), (), ("blue", "blue")]
    cache: Cache[ConfigMap] = Cache()
    cache.add_index("color", lambda obj: said[int(obj.revision) - 1])
    for revision in (1, 2, 3, 1):
        assert cache.put(config_map("a", revision))
        found = [[obj.name for obj in cache.by_index("color", color)] for color in ("red", "blue")]
        assert found == [["a"] if color in said[revision - 1] else [] for color in ("red", "blue")]


def test_an_index_function_that_fails_leaves_the_cache_as_it_was() -> None:
    """Half stored, the object was told to nobody, ever: the next list found it there already."""
    cache: Cache[ConfigMap] = Cache()
    cache.add_index("color", by_color)
    cache.add_index("number", lambda obj: [str(int(color)) for color in by_color(obj)])
    known = config_map("a", 1, color="1")
    cache.put(known)
    with pytest.raises(ValueError, match="red"):
        cache.put(config_map("a", 2, color="red"))
    assert [list(cache), cache.by_index("color", "1"), cache.by_index("color", "red")] == [[known], [known], []]


def test_an_index_hands_out_the_newest_object() -> None:
    cache: Cache[ConfigMap] = Cache()
    cache.add_index("color", by_color)
    cache.put(config_map("a", 1, color="red"))
    newest = config_map("a", 2, color="red")
    cache.put(newest)
    assert cache.by_index("color", "red") == [newest]


def test_a_replacement_changes_nothing_before_it_is_committed() -> None:
    cache: Cache[ConfigMap] = Cache()
    cache.put(config_map("a"))
    Replacement(cache).offer([config_map("b")])
    assert [obj.name for obj in cache] == ["a"]


def test_a_replacement_reports_deletions_before_additions() -> None:
    cache: Cache[ConfigMap] = Cache()
    gone, new = config_map("gone"), config_map("new")
    cache.put(gone)
    replacement = Replacement(cache)
    replacement.offer([new])
    assert list(replacement.commit()) == [Change(key("gone"), gone, None), Change(key("new"), None, new)]


# Random lives of a few objects: (name, what happens). A put gets a fresh revision; a rebirth a fresh uid too.
names = st.sampled_from("abcde")
colors = st.sampled_from(["", "red", "blue", "red+blue"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), names, colors),
        st.tuples(st.just("rebirth"), names, colors),
        st.tuples(st.just("remove"), names, st.just("")),
        st.tuples(st.just("replace"), st.sets(names), colors),
    ),
    max_size=30,
)


@given(steps)
def test_the_changes_replayed_give_the_cache_and_the_indexes_agree_with_it(
    program: list[tuple[str, str | set[str], str]],
) -> None:
    cache: Cache[ConfigMap] = Cache()
    cache.add_index("color", by_color)
    replayed: dict[Key, ConfigMap] = {}
    lives: dict[str, int] = {}
    for revision, (what, target, color) in enumerate(program, start=1):
        changes: list[Change[ConfigMap]] = []
        if what == "replace":
            replacement = Replacement(cache)
            replacement.offer([config_map(name, revision, f"{name}{lives.get(name, 0)}", color) for name in sorted(target)])
            changes = list(replacement.commit())
        elif what == "remove":
            changes = cache.remove(key(str(target)))
        else:
            name = str(target)
            lives[name] = lives.get(name, 0) + (what == "rebirth")
            changes = cache.put(config_map(name, revision, f"{name}{lives[name]}", color))
        for change in changes:
            assert replayed.get(change.key) == change.old, "a change begins where the one before it ended"
            if change.new is None:
                del replayed[change.key]
            else:
                replayed[change.key] = change.new
    assert replayed == {obj.key: obj for obj in cache}
    for color in ("red", "blue"):
        assert sorted(obj.name for obj in cache.by_index("color", color)) == sorted(
            obj.name for obj in cache if color in by_color(obj)
        )


def test_a_list_that_shows_another_life_under_the_same_revision_is_a_deletion_and_an_addition() -> None:
    """As from a store that was made anew."""
    cache: Cache[ConfigMap] = Cache()
    before, after = config_map("a", uid="one"), config_map("a", uid="two")
    cache.put(before)
    replacement = Replacement(cache)
    replacement.offer([after])
    assert list(replacement.commit()) == [Change(key("a"), before, None), Change(key("a"), None, after)]


def test_values_that_nothing_has_any_more_take_no_memory() -> None:
    cache: Cache[ConfigMap] = Cache()
    cache.add_index("color", by_color)
    for number in range(10):
        cache.put(config_map("a", revision=number + 1, color=f"color-{number}"))
    cache.remove(key("a"))
    assert cache._indexes == {"color": {}}
