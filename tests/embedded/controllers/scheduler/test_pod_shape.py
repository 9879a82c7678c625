"""What a Pod takes: the rules of amounts and of host ports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.containers import Resources
from applecart.api.pods import PodSpec
from applecart.embedded.controllers.scheduler.pod_shape import amounts_of, host_ports_of, requests_of
from tests.embedded.controllers.scheduler.objects import container

GIB = 2**30

CASES = [
    ("nothing", PodSpec(containers=(container(),)), {}, {}),
    ("thousandths of a cpu", PodSpec(containers=(container(cpu="1.5"),)), {}, {"cpu": 1500}),
    ("whole bytes", PodSpec(containers=(container(memory="2Gi"),)), {}, {"memory": 2 * GIB}),
    ("the sum of containers", PodSpec(containers=(container("a", cpu="1"), container("b", cpu="500m"))), {}, {"cpu": 1500}),
    ("a part of a unit counts as one", PodSpec(containers=(container(memory="100m"),)), {}, {"memory": 1}),
    (
        "parts are added before they are rounded",
        PodSpec(containers=(container("a", memory="100m"), container("b", memory="100m"))),
        {},
        {"memory": 1},
    ),
    (
        "a small init container costs nothing more",
        PodSpec(containers=(container(cpu="2"),), init_containers=(container("init", cpu="1"),)),
        {},
        {"cpu": 2000},
    ),
    (
        "the largest init container counts",
        PodSpec(containers=(container(cpu="1"),), init_containers=(container("one", cpu="3"), container("two", cpu="2"))),
        {},
        {"cpu": 3000},
    ),
    (
        "a sidecar stays",
        PodSpec(containers=(container(cpu="1"),), init_containers=(container("side", cpu="1", restart_policy="Always"),)),
        {},
        {"cpu": 2000},
    ),
    (
        "an init container runs beside the sidecars before it, not beside those after it",
        PodSpec(
            containers=(container(cpu="1"),),
            init_containers=(
                container("before", cpu="1", restart_policy="Always"),
                container("init", cpu="4"),
                container("after", cpu="2", restart_policy="Always"),
            ),
        ),
        {},
        {"cpu": 5000},
    ),
    ("overhead comes on top", PodSpec(containers=(container(cpu="1"),)), {"cpu": "250m"}, {"cpu": 1250}),
    (
        "what the Pod asks replaces what its containers ask",
        PodSpec(containers=(container(cpu="1", memory="1Gi"),), resources=Resources(requests={"cpu": "3"})),
        {},
        {"cpu": 3000, "memory": GIB},
    ),
    (
        "a Pod cannot ask for a vendor's resource as a whole",
        PodSpec(containers=(container(),), resources=Resources(requests={"example.com/gpu": "3"})),
        {},
        {},
    ),
    ("zero is nothing", PodSpec(containers=(container(cpu="0"),)), {}, {}),
    ("what is no quantity is nothing", PodSpec(containers=(container(cpu="many", memory="1"),)), {}, {"memory": 1}),
]


@pytest.mark.parametrize(("spec", "overhead", "taken"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_pod_takes(spec: PodSpec, overhead: dict[str, str], taken: dict[str, int]) -> None:
    assert requests_of(spec, overhead) == taken


def test_a_node_offers_no_part_of_a_unit() -> None:
    assert amounts_of({"cpu": "7910m", "memory": "1500m", "pods": "2", "bad": "x"}) == {"cpu": 7910, "memory": 1, "pods": 2}


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    spec = PodSpec(
        containers=(container(host_port=80),),
        init_containers=(container("side", host_port=81, restart_policy="Always"), container("init", host_port=82)),
    )
    assert {port.port for port in host_ports_of(spec)} == {80, 81}


millis = st.integers(0, 8000)


@given(st.lists(millis, max_size=4), st.lists(st.tuples(millis, st.booleans()), max_size=4))
def test_a_pod_never_takes_less_than_what_runs_at_once(main: list[int], starting: list[tuple[int, bool]]) -> None:
    spec = PodSpec(
        containers=tuple(container(f"c{at}", cpu=f"{size}m") for at, size in enumerate(main)),
        init_containers=tuple(
            container(f"i{at}", cpu=f"{size}m", restart_policy="Always" if stays else None)
            for at, (size, stays) in enumerate(starting)
        ),
    )
    moments = [sum(main) + sum(size for size, stays in starting if stays)]
    for at, (size, _) in enumerate(starting):
        moments.append(size + sum(other for other, stays in starting[:at] if stays))
    assert requests_of(spec, {}).get("cpu", 0) == max(moments)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=12), max_size=4))
def test_no_text_in_a_quantity_stops_us(quantities: dict[str, str]) -> None:
    spec = PodSpec(containers=(container(),), overhead=quantities)
    assert all(amount > 0 for amount in requests_of(spec, quantities).values())
    amounts_of(quantities)
