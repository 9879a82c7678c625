"""Addresses of guests: 253 a day, and a guest keeps its own."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import Clock
from applecart.sim.mac import SimulatedMac
from applecart.sim.tart.leases import LEASE_S, Leases, read_leases, write_leases
from tests.sim.tart.sim_tart import in_process
from tests.virtual_time import elapse

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_pool_runs_dry_after_253_guests_and_fills_again_after_a_day() -> None:
    """Weakness 7: more than 253 new VMs a day leave the next one without an address."""
    leases = Leases()
    given_out = [leases.lease(f"guest-{number}", NOW) for number in range(253)]
    assert (given_out[0], given_out[-1]) == ("192.168.64.2", "192.168.64.254")
    assert len(set(given_out)) == 253
    assert leases.lease("one too many", NOW) is None
    assert leases.lease("guest-7", NOW) == given_out[7]
    later = NOW + timedelta(seconds=LEASE_S)
    assert leases.lease("one too many", later) == "192.168.64.2"


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 2 * LEASE_S)), max_size=40))
def test_no_two_guests_ever_share_an_address(asks: list[tuple[str, int]]) -> None:
    leases = Leases(last_host_number=5)
    now = NOW
    for guest, after_s in asks:
        now += timedelta(seconds=after_s)
        leases.lease(guest, now)
        held = [lease.address for lease in leases.leases if lease.expires_at > now]
        assert len(held) == len(set(held)) <= 4
        assert all(leases.address_of(lease.mac_address, now) for lease in leases.leases if lease.expires_at > now)


async def test_a_guest_without_an_address_gets_one_when_a_lease_expires(tmp_path: Path, clock: Clock) -> None:
    tart = in_process(tmp_path, clock)
    assert isinstance(tart.mac, SimulatedMac)
    write_leases(tart.mac.store.sim, Leases(last_host_number=2, lease_s=600))
    await tart.out("create", "first")
    await tart.out("create", "second")
    tart.rules({"vm": "first", "runs_s": 60})
    await tart.boot("first")
    await elapse(120)
    await tart.start("second")
    assert (await tart.run("ip", "second", "--wait", "30")).code == 1
    assert (await tart.out("ip", "second", "--wait", "900")).strip() == "192.168.64.2"


async def test_a_guest_that_runs_for_days_keeps_its_address(tmp_path: Path, clock: Clock) -> None:
    tart = in_process(tmp_path, clock)
    await tart.out("create", "v")
    _, _, address = await tart.boot("v")
    await elapse(3 * LEASE_S)
    assert (await tart.out("ip", "v")).strip() == address
    assert len(read_leases(tart.home / "sim").leases) == 1
