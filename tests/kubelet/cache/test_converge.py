"""Fetching an account's newer cache beside its job."""

import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from applecart.clock import Clock
from applecart.kubelet.cache.images import ImageFailed, Images
from applecart.kubelet.cache.volumes import LARGEST_DOWNLOAD
from applecart.sim.cache_tools import CURL_NO_RANGE, write_image
from applecart.sim.tart.faults import Fault
from applecart.tart.files import Files
from tests.kubelet.cache.stage import ACCOUNT, CAP_GIB, CLEAN, GIB, URL, Host, binaries, cas, host, pod
from tests.virtual_time import elapse

MIB = 1 << 20


def curls(here: Host) -> list[tuple[str, ...]]:
    return [call.argv for call in here.mac.calls if call.argv and call.argv[0].endswith("curl")]


async def test_a_newer_cache_is_fetched_while_the_job_runs_with_what_was_here(tmp_path: Path, clock: Clock) -> None:
    """Incident 50: the job waited two minutes for the download."""
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        here.put_head(here.entry(), binaries("a", "b"), 5, bytes_per_s=2 * MIB)
        entry = await here.a_job(volumes)
        assert here.told(entry, "cache-ready") == "1"
        assert here.told(entry, "cache-base-generation") == "3"
        assert here.generation() == "3"
        await elapse(600)
        assert (here.image(here.master()), here.generation()) == (binaries("a", "b"), "5")
        assert here.counted("converged_total") == 1
        assert here.image(here.branch_image(entry)) == binaries("a")
        assert (here.mac.cache.attached, list((here.root / "_mounts").iterdir())) == ({}, [])
        await volumes.aclose()


async def test_the_address_is_never_shown(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        here.put_head(here.entry(), binaries("a"), 5)
        await here.a_job(volumes)
        await elapse(60)
        argv = curls(here)[0]
        assert not any("https" in word and "objects" in word for word in argv)
        assert "--proto" in argv
        assert "=https" in argv
        assert "-L" not in argv
        assert list((here.root / "_converge").iterdir()) == []
        assert here.generation() == "5"
        await volumes.aclose()


async def test_an_image_is_looked_into_read_only_and_out_of_sight(tmp_path: Path, clock: Clock) -> None:
    """Without `-quiet`, which closes its stderr as well: a busy host would look like a broken image."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        here.put_head(here.entry(), binaries("a"), 5)
        await here.a_job(volumes)
        await elapse(60)
        hdiutil = [call.argv[1:] for call in here.mac.calls if call.argv and call.argv[0] == "/usr/bin/hdiutil"]
        attach, detach = hdiutil[-2:]
        assert " ".join(attach[:-2]) == "attach -readonly -owners off -nobrowse -noverify -mountpoint"
        assert detach == ("detach", attach[-2], "-force")
        await volumes.aclose()


async def test_the_head_may_come_a_little_later_than_the_job(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.put_head(entry, binaries("a"), 5)
        await elapse(60)
        assert here.generation() == "5"
        await volumes.aclose()


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (None, "the guest left no volume head"),
        ({"generation": 0}, "the account has published no cache yet"),
        ({"generation": 3}, "generation 3 is here and the newest is 3"),
        ({"generation": 2}, "generation 3 is here and the newest is 2"),
        ({"generation": 5, "digest": "x"}, "the volume head has no digest"),
    ],
)
async def test_each_reason_to_fetch_nothing_is_told(
    tmp_path: Path, clock: Clock, head: dict[str, object] | None, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Incident 50: eight reasons to do nothing were silent, and 286 jobs began cold for one that did not."""
    caplog.set_level(logging.INFO)
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        if head is not None:
            here.put_head(here.entry(), binaries("b"), **head)  # type: ignore[arg-type]
        await here.a_job(volumes)
        await elapse(30)
        assert why in [getattr(record, "fields", {}).get("why") for record in caplog.records]
        assert curls(here) == []
        assert here.generation() == "3"
        await volumes.aclose()


async def test_a_download_goes_on_where_it_broke_off(tmp_path: Path, clock: Clock) -> None:
    """Weakness 33: a large cache that broke off began anew, and never arrived."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        remote = here.put_head(here.entry(), binaries("a"), 5, breaks_at=[300 * MIB, 400 * MIB])
        await here.a_job(volumes)
        await elapse(200)
        assert remote.asked_from == [0, 300 * MIB, 700 * MIB]
        assert here.generation() == "5"
        await volumes.aclose()


async def test_what_one_job_could_not_finish_the_next_one_does(tmp_path: Path, clock: Clock) -> None:
    """Weakness 33: also over jobs and agents."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        remote = here.put_head(here.entry(), binaries("a"), 5, breaks_at=[100 * MIB, 100 * MIB, 100 * MIB])
        entry = await here.a_job(volumes)
        await elapse(300)
        assert here.generation() == ""
        await volumes.finish(entry, CLEAN, here.status(entry))
        await volumes.aclose()
        volumes = here.agent()
        here.entries.clear()
        here.put_head(here.entry("job-2"), binaries("a"), 5)
        here.mac.cache.remotes[URL] = remote
        await here.a_job(volumes, "job-2")
        await elapse(60)
        assert remote.asked_from == [0, 100 * MIB, 200 * MIB, 300 * MIB]
        assert here.generation() == "5"
        assert list((here.root / "_partials" / ACCOUNT / "tuist-cache").iterdir()) == []
        await volumes.aclose()


async def test_a_server_that_cannot_resume_is_asked_from_the_beginning(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        remote = here.put_head(here.entry(), binaries("a"), 5, serves_ranges=False, breaks_at=[100 * MIB])
        await here.a_job(volumes)
        await elapse(300)
        assert CURL_NO_RANGE == 33
        assert remote.asked_from == [0, 100 * MIB, 0]
        assert here.generation() == "5"
        await volumes.aclose()


async def test_all_attempts_share_one_deadline(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        here.put_head(here.entry(), binaries("a"), 5, bytes_per_s=1024)
        here.fault(Fault(on="curl", kind="slow", seconds=1000.0, times=1))
        await here.a_job(volumes)
        await elapse(1790)
        assert any(process.argv[0].endswith("curl") for process in here.mac.table.all())
        await elapse(60)
        assert not any(process.argv[0].endswith("curl") for process in here.mac.table.all())
        assert here.generation() == ""
        await volumes.aclose()


async def test_a_download_of_an_overtaken_head_is_dropped(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        folder = here.root / "_partials" / ACCOUNT / "tuist-cache"
        folder.mkdir(parents=True)
        (folder / f"{'0' * 40}.part").write_bytes(b"old")
        here.put_head(here.entry(), binaries("a"), 5, breaks_at=[MIB, MIB, MIB])
        await here.a_job(volumes)
        await elapse(300)
        assert [path.name for path in folder.iterdir()] == [f"{here.digest(binaries('a'))}.part"]
        await volumes.aclose()


async def test_no_account_goes_on_with_anothers_bytes(tmp_path: Path, clock: Clock) -> None:
    """A digest tells names, not contents: who could plant the beginning of a file could plant its contents."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        remote = here.put_head(here.entry("one"), binaries("a"), 5, breaks_at=[MIB, MIB, MIB])
        await here.a_job(volumes, "one", "7")
        await elapse(300)
        here.put_head(here.entry("two"), binaries("a"), 5)
        here.mac.cache.remotes[URL] = remote
        await here.a_job(volumes, "two", "8")
        await elapse(60)
        assert remote.asked_from[-1] == 0
        await volumes.aclose()


async def test_a_cache_that_is_not_what_it_claims_is_reported_and_not_installed(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        here.put_head(here.entry(), binaries("b"), 5, digest="1" * 40)
        entry = await here.a_job(volumes)
        await elapse(60)
        assert here.told(entry, "volume-head-unverifiable") == "1" * 40
        assert (here.image(here.master()), here.generation()) == (binaries("a"), "3")
        assert list((here.root / "_partials" / ACCOUNT / "tuist-cache").iterdir()) == []
        await volumes.aclose()


async def test_a_cache_that_cannot_be_measured_is_no_proof_against_it(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        here.put_head(here.entry(), binaries("b"), 5)
        here.fault(Fault(on="hdiutil", kind="fail", vm="attach"))
        entry = await here.a_job(volumes)
        await elapse(60)
        assert here.told(entry, "volume-head-unverifiable") is None
        assert here.generation() == "3"
        await volumes.aclose()


@pytest.mark.parametrize("kind", ["fail", "hang", "crash"])
async def test_an_image_is_detached_however_looking_into_it_went(tmp_path: Path, clock: Clock, kind: str) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        here.put_head(here.entry(), binaries("b"), 5)
        here.fault(Fault(on="hdiutil", kind=kind, vm="attach", when="after"))
        await here.a_job(volumes)
        await elapse(300)
        assert here.mac.cache.attached == {}
        assert list((here.root / "_mounts").iterdir()) == []
        await volumes.aclose()


async def test_a_head_without_compiler_results_may_be_replaced_and_does_not_replace(tmp_path: Path, clock: Clock) -> None:
    """Weakness 34: a host that knew no compiler cache emptied everybody's."""
    async with host(tmp_path, clock, cas_gib=8) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes, "first")
        here.guest_ends(entry, cas("x"), result="accepted 1")
        await volumes.finish(entry, CLEAN, here.status(entry))
        here.put_head(here.entry("second"), binaries("b"), 5)
        entry = await here.a_job(volumes, "second")
        await elapse(60)
        assert (here.image(here.master()), here.generation()) == (cas("x"), "1")
        assert here.told(entry, "volume-head-unverifiable") == here.digest(binaries("b"))
        await volumes.aclose()


async def test_two_jobs_of_an_account_fetch_its_cache_once(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        for name in ("one", "two"):
            remote = here.put_head(here.entry(name), binaries("a"), 5, bytes_per_s=10 * MIB)
            here.mac.cache.remotes.setdefault(URL, remote)
            await here.a_job(volumes, name)
        await elapse(300)
        assert len(curls(here)) == 1
        await volumes.aclose()


async def test_a_download_outlives_the_vm_that_told_of_it_and_tells_nobody_else(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        here.put_head(here.entry(), binaries("a"), 5, digest="1" * 40, bytes_per_s=10 * MIB)
        entry = await here.a_job(volumes)
        await volumes.finish(entry, CLEAN, here.status(entry))
        here.share(entry).stage({}, "mac-1")  # another Pod has the name of its VM by now
        await elapse(300)
        assert curls(here)
        assert here.told(entry, "volume-head-unverifiable") is None
        await volumes.aclose()


async def test_a_promotion_during_a_download_wins_if_it_is_newer(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        here.put_head(here.entry(), binaries("head"), 5, bytes_per_s=10 * MIB)
        entry = await here.a_job(volumes)
        here.guest_ends(entry, binaries("mine"), result="accepted 6")
        await volumes.finish(entry, CLEAN, here.status(entry))
        await elapse(300)
        assert (here.image(here.master()), here.generation()) == (binaries("mine"), "6")
        assert here.counted("converged_total") == 0
        await volumes.aclose()


async def test_no_lock_is_held_while_a_download_runs(tmp_path: Path, clock: Clock) -> None:
    """Incident 52: whoever wanted anything of an account waited for its merge."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        here.put_master(binaries("a"), 3)
        here.put_head(here.entry("one"), binaries("a", "b"), 5, bytes_per_s=MIB)
        await here.a_job(volumes, "one")
        entry = here.entry("two")
        await volumes.attach(entry, here.share(entry))
        volumes.see(pod("two"), entry, here.share(entry))
        await elapse(2)
        assert here.told(entry, "cache-ready") == "1"
        assert list(volumes.labels()) == [f"tuist.dev/cache-master-{ACCOUNT}"]
        await volumes.aclose()


async def test_a_whole_download_that_nobody_moved_is_not_fetched_again(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        remote = here.put_head(here.entry(), binaries("a"), 5)
        folder = here.root / "_partials" / ACCOUNT / "tuist-cache"
        folder.mkdir(parents=True)
        write_image(folder / f"{here.digest(binaries('a'))}.part", remote.image)
        await here.a_job(volumes)
        await elapse(60)
        assert remote.asked_from == []
        assert here.generation() == "5"
        assert here.mac.cache.disk().free_bytes < 80 * GIB
        await volumes.aclose()


async def test_no_more_is_fetched_than_there_is_room_promised_for(tmp_path: Path, clock: Clock) -> None:
    """The address is a guest's word: behind it may lie anything, and a full disk costs every account's jobs their work."""
    largest_bytes = int(LARGEST_DOWNLOAD * CAP_GIB * GIB)
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        here.put_head(here.entry(), binaries("a"), 5, breaks_at=[300 * MIB])
        await here.a_job(volumes)
        await elapse(200)
        allowed = [int(argv[argv.index("--max-filesize") + 1]) for argv in curls(here)]
        assert allowed == [largest_bytes, largest_bytes - 300 * MIB]
        assert here.generation() == "5"
        await volumes.aclose()


@pytest.mark.parametrize("notices", [True, False])
async def test_a_cache_that_is_larger_than_its_room_goes_and_is_not_asked_for_again(
    tmp_path: Path, clock: Clock, notices: bool
) -> None:
    """Whether curl notices depends on its version and on whether the server tells a length."""
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        remote = here.put_head(here.entry(), binaries("b"), 5, size_bytes=21 * GIB)
        if notices:
            here.fault(Fault(on="curl", kind="fail", code=63, text="curl: (63) Maximum file size exceeded"))
        entry = await here.a_job(volumes)
        await elapse(1200)
        assert len(curls(here)) == 1
        assert list((here.root / "_partials" / ACCOUNT / "tuist-cache").iterdir()) == []
        assert (here.image(here.master()), here.generation()) == (binaries("a"), "3")
        assert here.told(entry, "volume-head-unverifiable") is None
        assert remote.asked_from == ([] if notices else [0])
        await volumes.aclose()


async def test_a_head_is_never_read_from_the_next_pod_of_that_name(tmp_path: Path, clock: Clock) -> None:
    """The folder is found by the VM's name, and the next VM of that name may work for another account."""
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        old = await here.a_job(volumes)  # its VM ends before its guest left a head
        await volumes.finish(old, CLEAN, here.status(old))
        new = replace(old, uid="uid-of-the-next")
        here.entries = {new.uid: new}
        here.share(new).stage({}, "mac-1")
        await volumes.attach(new, here.share(new))
        here.put_head(new, binaries("of another account"), 99)
        await elapse(60)
        assert curls(here) == []
        assert here.image(here.master()) == binaries("a")
        await volumes.aclose()


async def test_nothing_is_fetched_to_where_the_disk_was(tmp_path: Path, clock: Clock) -> None:
    """Incident 51: it went away while the guest's head was waited for, and the boot disk would have taken its place."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.mac.cache.is_mounted = False
        here.put_head(entry, binaries("a"), 5)
        await elapse(60)
        assert curls(here) == []
        assert list((here.root / "_partials").iterdir()) == []
        await volumes.aclose()


async def test_no_image_is_attached_where_the_disk_was(tmp_path: Path, clock: Clock) -> None:
    """macOS mounts a volume beside a folder that has its name, so one folder there would keep the disk away for good."""
    async with host(tmp_path, clock) as here:
        images = Images(here.mac, Files(), tmp_path / "gone" / "_mounts")
        with pytest.raises(ImageFailed, match="the disk for caches is gone"):
            await images.measure(tmp_path / "gone" / "some.sparseimage")
        assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    "fault",
    [
        Fault(on="hdiutil", vm="attach", kind="hang"),
        Fault(on="hdiutil", vm="attach", kind="fail", text="hdiutil: attach failed - Resource busy"),
        Fault(on="hdiutil", vm="attach", kind="fail", text="hdiutil: attach failed - Resource temporarily unavailable"),
    ],
    ids=["hangs", "busy", "unavailable"],
)
async def test_a_whole_download_is_kept_when_only_the_host_was_too_busy_to_look_into_it(
    tmp_path: Path, clock: Clock, fault: Fault
) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        here.put_head(here.entry(), binaries("a"), 5)
        here.fault(fault)
        entry = await here.a_job(volumes)
        await elapse(300)
        assert here.generation() == ""
        await volumes.finish(entry, CLEAN, here.status(entry))
        here.put_head(here.entry("next"), binaries("a"), 5)
        await here.a_job(volumes, "next")
        await elapse(60)
        assert here.generation() == "5"
        assert len(curls(here)) == 1
        await volumes.aclose()
