"""A VM's cache from its boot to its end, on a simulated disk."""

import asyncio
import os
from pathlib import Path
from typing import Any, ClassVar

import pytest

from applecart.api.metric_names.label_values import CacheOutcome
from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kubelet.cache.budget import split
from applecart.sim.cache_tools import Image, read_image, write_image
from applecart.sim.tart.faults import Fault
from applecart.tart.files import Files
from tests.kubelet.cache.stage import ACCOUNT, CLEAN, FAILED_JOB, GIB, binaries, cas, host, pod
from tests.virtual_time import elapse


async def test_a_vm_boots_with_an_empty_folder_that_its_guest_may_write_to(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock, cas_gib=8) as here:
        entry = here.entry()
        shares = await here.agent().attach(entry, here.share(entry))
        folder = here.branch_image(entry).parent
        assert [share.word for share in shares] == [f"cache:{folder}"]
        assert list(folder.iterdir()) == []
        assert folder.stat().st_mode & 0o777 == 0o777
        assert here.told(entry, "cache-max-bytes") == str(split(20, 8).binary_bytes) == str(10 * GIB)
        assert here.told(entry, "cache-ready") is None


async def test_a_root_that_tart_cannot_be_told_is_refused_at_once(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path / "a:b", clock) as here:
        with pytest.raises(BadInput, match="--runner-cache-root"):
            here.agent()


async def test_no_cache_is_given_before_the_job_of_an_account_is_committed(tmp_path: Path, clock: Clock) -> None:
    """Incident 44: a cache that was chosen at boot was account A's in a VM that then worked for B."""
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        entry = await here.a_job(volumes, account="")
        assert not here.branch_image(entry).exists()
        assert here.told(entry, "cache-ready") is None
        volumes.see(pod(), entry, here.share(entry))
        await elapse(5)
        assert here.image(here.branch_image(entry)) == binaries("a")
        assert here.told(entry, "cache-ready") == "1"
        await volumes.aclose()


async def test_a_job_gets_a_clone_of_its_own_accounts_master(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock, cas_gib=8) as here:
        here.put_master(binaries("a"), 3)
        here.put_master(binaries("b"), 9, account="7")
        volumes = here.agent()
        entry = await here.a_job(volumes)
        assert here.image(here.branch_image(entry)) == binaries("a")
        assert here.branch_image(entry).stat().st_mode & 0o777 == 0o666
        assert here.told(entry, "cache-base-generation") == "3"
        assert here.told(entry, "cas-enabled") == str(8 * GIB)
        assert here.counted("materialize_total", result="warm") == 1
        await volumes.aclose()


async def test_an_account_without_a_master_begins_with_an_empty_image(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        assert here.image(here.branch_image(entry)) == {}
        assert here.told(entry, "cache-base-generation") == "0"
        assert here.told(entry, "cas-enabled") is None
        assert here.told(entry, "cache-ready") == "1"
        assert here.counted("materialize_total", result="cold") == 1
        await volumes.aclose()


async def test_what_hdiutil_is_asked_to_make(tmp_path: Path, clock: Clock) -> None:
    """Without `-quiet`, which closes its stderr as well: an image that could not be made would not say why."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        await here.a_job(volumes)
        made = next(" ".join(call.argv[:-1]) for call in here.mac.calls if "create" in call.argv)
        assert made == "/usr/bin/hdiutil create -size 20g -type SPARSE -fs APFS -volname TuistCache"
        await volumes.aclose()


@pytest.mark.parametrize("program", ["cp", "hdiutil", "chmod"])
async def test_whatever_fails_once_a_job_still_finds_an_image(tmp_path: Path, clock: Clock, program: str) -> None:
    """Incident 47: a job whose cache could not be written died of it; so every way leaves an image."""
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        here.fault(Fault(on=program, kind="fail"))
        volumes = here.agent()
        entry = await here.a_job(volumes)
        assert here.image(here.branch_image(entry)) in ({}, binaries("a"))
        assert here.told(entry, "cache-base-generation") == ("3" if program == "hdiutil" else "0")
        assert here.told(entry, "cache-ready") == "1"
        await volumes.aclose()


async def test_without_any_image_the_guest_is_not_told_that_its_cache_is_ready(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.fault(Fault(on="hdiutil", kind="fail", times=None))
        volumes = here.agent()
        entry = await here.a_job(volumes)
        assert here.told(entry, "cache-ready") is None
        here.fault()
        volumes.see(pod(), entry, here.share(entry))
        await elapse(5)
        assert here.told(entry, "cache-ready") == "1"  # the next look tries again
        await volumes.aclose()


async def test_a_hung_copy_ends_at_its_deadline_and_the_job_begins_empty(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        here.fault(Fault(on="cp", kind="hang"))
        volumes = here.agent()
        began_s = clock.monotonic()
        entry = here.entry()
        await volumes.attach(entry, here.share(entry))
        volumes.see(pod(), entry, here.share(entry))
        assert clock.monotonic() - began_s < 1  # whoever looks at Pods does not wait for it
        await elapse(125)
        assert here.image(here.branch_image(entry)) == {}
        await volumes.aclose()


@pytest.mark.parametrize(
    ("account", "untrusted"), [(ACCOUNT, "true"), (ACCOUNT, "yes"), ("branches", ""), ("007", ""), ("acme", "")]
)
async def test_a_job_that_is_not_proven_to_be_the_accounts_own_begins_empty_and_ends_as_nothing(
    tmp_path: Path, clock: Clock, account: str, untrusted: str
) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        entry = await here.a_job(volumes, account=account, untrusted=untrusted)
        assert here.image(here.branch_image(entry)) == {}
        here.guest_ends(entry, binaries("poison"))
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.DISCARDED
        assert here.image(here.master()) == binaries("a")
        assert not any("curl" in call.argv[0] for call in here.mac.calls if call.argv)
        await volumes.aclose()


async def test_a_job_that_did_well_leaves_its_cache_as_the_accounts_master(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.guest_ends(entry, binaries("a", "b"), result="accepted 4")
        (here.status(entry) / "volume-upload-ms").write_text("2500")
        (here.status(entry) / "cache-fill-percent").write_text("61")
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.PROMOTED
        assert here.image(here.master()) == binaries("a", "b")
        assert here.generation() == "4"
        assert not here.branch_image(entry).parent.exists()
        assert here.counted("outcome_total", outcome="promoted") == 1
        assert here.counted("promote_total", result="accepted") == 1
        assert here.counted("upload_seconds_sum") == 2.5
        assert here.counted("fill_percent_sum") == 61
        assert volumes.labels() == {f"tuist.dev/cache-master-{ACCOUNT}": "true"}
        await volumes.aclose()


@pytest.mark.parametrize(
    ("result", "dirty", "is_clean"),
    [
        ("accepted 4", "1", False),  # the job failed
        ("accepted 4", "", True),  # the guest crashed before it could tell
        ("accepted 4", "0", True),  # nothing changed
        ("accepted 4", "11", True),
        ("", "1", True),
        ("conflict", "1", True),
        ("error", "1", True),
        ("accepted 0", "1", True),
        ("accepted -4", "1", True),
        ("accepted 4 5", "1", True),
        ("accepted 99999999999999999999999", "1", True),
        ("accepted 3", "1", True),  # as old as the local one
        ("accepted 2", "1", True),
    ],
)
async def test_anything_less_is_discarded(tmp_path: Path, clock: Clock, result: str, dirty: str, is_clean: bool) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.guest_ends(entry, binaries("b"), result=result, dirty=dirty)
        assert await volumes.finish(entry, CLEAN if is_clean else FAILED_JOB, here.status(entry)) is CacheOutcome.DISCARDED
        assert (here.image(here.master()), here.generation()) == (binaries("a"), "3")
        assert list((here.root / "branches").iterdir()) == []
        await volumes.aclose()


async def test_a_lost_race_is_not_counted_as_an_outage_and_every_series_exists_from_the_start(
    tmp_path: Path, clock: Clock
) -> None:
    """Incident 53: rejects and outages were one number, and the chart had no data until the first of them."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        samples = {sample.name for family in here.metrics.registry.collect() for sample in family.samples}
        assert "tart_kubelet_cache_volume_promote_total" in samples
        for name, result in (("one", "conflict"), ("two", "error"), ("three", "accepted 1")):
            entry = await here.a_job(volumes, name)
            here.guest_ends(entry, binaries(name), result=result)
            await volumes.finish(entry, CLEAN, here.status(entry))
        for result in ("accepted", "rejected", "error"):
            assert here.counted("promote_total", result=result) == 1
        await volumes.aclose()


async def test_a_later_generation_replaces_an_earlier_one_whole_and_never_the_other_way(tmp_path: Path, clock: Clock) -> None:
    """Incident 52: caches that were merged held everybody up and grew without end."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        first = await here.a_job(volumes, "first")
        second = await here.a_job(volumes, "second")
        here.guest_ends(second, binaries("second"), result="accepted 6")
        here.guest_ends(first, binaries("first"), result="accepted 5")
        assert await volumes.finish(second, CLEAN, here.status(second)) is CacheOutcome.PROMOTED
        assert await volumes.finish(first, CLEAN, here.status(first)) is CacheOutcome.DISCARDED
        assert (here.image(here.master()), here.generation()) == (binaries("second"), "6")
        await volumes.aclose()


@pytest.mark.parametrize("later", [pod(account="7"), pod(untrusted="true"), pod(account="")])
async def test_a_pod_whose_account_changes_leaves_nothing_to_either(tmp_path: Path, clock: Clock, later: object) -> None:
    """Incident 44: what was given for one account never becomes another's."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        volumes.see(later, entry, here.share(entry))  # type: ignore[arg-type]
        await volumes.aclose()
        volumes = here.agent()  # and an agent that comes later knows it too
        here.guest_ends(entry, binaries("a"))
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.DISCARDED
        assert volumes.labels() == {}
        await volumes.aclose()


@pytest.mark.parametrize("kind", ["symlink", "hard link", "fifo", "folder", "missing"])
async def test_a_guest_cannot_have_anything_but_its_own_image_promoted(tmp_path: Path, clock: Clock, kind: str) -> None:
    """Weakness 28: a link in place of the image would have made another account's cache its own."""
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("secret"), 9, account="7")
        volumes = here.agent()
        entry = await here.a_job(volumes)
        image = here.branch_image(entry)
        image.unlink()
        match kind:
            case "symlink":
                image.symlink_to(here.master("7"))
            case "hard link":
                os.link(here.master("7"), image)
            case "fifo":
                os.mkfifo(image)
            case "folder":
                image.mkdir()
        here.guest_ends(entry)
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.DISCARDED
        assert volumes.labels() == {"tuist.dev/cache-master-7": "true"}
        assert here.image(here.master("7")) == binaries("secret")
        await volumes.aclose()


async def test_no_link_that_a_guest_left_is_even_looked_through(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may lead to a disk that never answers, and whoever asks what is there waits with the whole agent."""
    look, followed = os.stat, []

    def stat(path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        if follow_symlinks and dir_fd is None and not isinstance(path, int) and os.path.islink(path):
            followed.append(path)
        return look(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes, account="")
        image = here.branch_image(entry)
        monkeypatch.setattr(os, "stat", stat)
        image.symlink_to(tmp_path)
        volumes.see(pod(), entry, here.share(entry))
        await elapse(5)
        assert here.image(image) == {}
        image.unlink()
        image.symlink_to(tmp_path / "a-file")
        (tmp_path / "a-file").touch()
        here.guest_ends(entry)
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.DISCARDED
        assert followed == []
        await volumes.aclose()


@pytest.mark.parametrize("name", ["cache-dirty", "cache-promote-result", "volume-upload-ms"])
async def test_a_guest_cannot_hold_up_the_agent_with_a_pipe(tmp_path: Path, clock: Clock, name: str) -> None:
    """Weakness 27: a pipe in place of a report would never have ended."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes)
        here.guest_ends(entry, binaries("a"))
        path = here.status(entry) / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        await volumes.finish(entry, CLEAN, here.status(entry))
        await volumes.aclose()


async def test_a_guest_cannot_hold_up_the_agent_with_a_pipe_for_a_head(tmp_path: Path, clock: Clock) -> None:
    """Weakness 27: it is read while the job runs, so the pipe lies there before the job begins."""
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        os.mkfifo(here.status(here.entry()) / "volume-head.json")
        await here.a_job(volumes)
        await elapse(20)
        assert len(asyncio.all_tasks()) == 1  # whoever looked for a head has given up
        await volumes.aclose()


async def test_an_image_that_lost_its_compiler_results_does_not_replace_one_that_has_them(tmp_path: Path, clock: Clock) -> None:
    """Weakness 34: promotion looked at no contents."""
    async with host(tmp_path, clock, cas_gib=8) as here:
        volumes = here.agent()
        for number, files in enumerate([binaries("a") | cas("x"), binaries("a", "b")], start=1):
            entry = await here.a_job(volumes, f"job-{number}")
            here.guest_ends(entry, files, result=f"accepted {number}")
            await volumes.finish(entry, CLEAN, here.status(entry))
        assert (here.image(here.master()), here.generation()) == (binaries("a") | cas("x"), "1")
        assert here.mac.cache.attached == {}
        await volumes.aclose()


async def test_where_people_switched_the_compiler_cache_off_its_loss_is_meant(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock, cas_gib=8) as here:
        volumes = here.agent()
        entry = await here.a_job(volumes, "job-1")
        here.guest_ends(entry, cas("x"), result="accepted 1")
        await volumes.finish(entry, CLEAN, here.status(entry))
        here.cas_gib = 0
        volumes = here.agent()
        entry = await here.a_job(volumes, "job-2")
        here.guest_ends(entry, binaries("a"), result="accepted 2")
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.PROMOTED
        await volumes.aclose()


async def test_a_vm_without_a_cache_volume_ends_as_one(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        volumes = here.agent()
        entry = here.entry()
        volumes.see(pod(), entry, here.share(entry))
        await elapse(1)
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.NONE
        assert here.counted("outcome_total", outcome="none") == 1


async def test_a_second_start_of_a_vm_begins_with_an_empty_folder(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        volumes = here.agent()
        entry = await here.a_job(volumes)
        write_image(here.branch_image(entry).with_name("left"), Image())
        here.share(entry).stage({}, "mac-1")
        assert await volumes.attach(entry, here.share(entry))
        assert list(here.branch_image(entry).parent.iterdir()) == []
        volumes.see(pod(), entry, here.share(entry))
        await elapse(5)
        assert here.told(entry, "cache-ready") == "1"
        assert read_image(here.branch_image(entry)) is not None
        await volumes.aclose()


async def test_an_end_while_the_copy_is_being_made_leaves_nothing(tmp_path: Path, clock: Clock) -> None:
    async with host(tmp_path, clock) as here:
        here.put_master(binaries("a"), 3)
        here.fault(Fault(on="cp", kind="hang"))
        volumes = here.agent()
        entry = await here.a_job(volumes)
        assert await volumes.finish(entry, CLEAN, here.status(entry)) is CacheOutcome.DISCARDED
        assert list((here.root / "_staged").iterdir()) == list((here.root / "_records").iterdir()) == []
        assert len(asyncio.all_tasks()) == 1
        await volumes.aclose()


async def test_a_job_is_given_its_cache_by_one_at_a_time(tmp_path: Path, clock: Clock) -> None:
    """One that is being stopped, when it ends at last, is not taken for the one that began meanwhile."""
    async with host(tmp_path, clock) as here:
        here.fault(Fault(on="hdiutil", kind="hang", times=None))
        volumes = here.agent()
        entry = await here.a_job(volumes)
        again = asyncio.create_task(volumes.attach(entry, here.share(entry)))
        await asyncio.sleep(0)
        volumes.see(pod(), entry, here.share(entry))
        await again
        await elapse(5)
        volumes.see(pod(), entry, here.share(entry))
        await elapse(5)
        assert [process.argv[1] for process in here.mac.table.all()] == ["create"]
        await volumes.aclose()


async def test_a_folder_that_a_guest_filled_is_never_removed_on_the_agents_own_loop(tmp_path: Path, clock: Clock) -> None:
    """A million files took a minute, and for that long nothing else of the host was looked after, heartbeats included."""

    class Watched(Files):
        removed_at_once: ClassVar[list[Path]] = []

        def remove(self, path: Path) -> None:
            if path.is_dir() and not path.name.endswith(".going"):
                self.removed_at_once.append(path)
            super().remove(path)

    async with host(tmp_path, clock) as here:
        volumes = here.agent(files=Watched())
        entry = await here.a_job(volumes, account="")
        for _ in range(2):  # a second start finds what the first left
            (here.branch_image(entry) / "full").mkdir(parents=True)
            await volumes.attach(entry, here.share(entry))
        (here.branch_image(entry) / "full").mkdir(parents=True)
        volumes.see(pod(), entry, here.share(entry))
        await elapse(5)
        assert here.image(here.branch_image(entry)) == {}
        (here.branch_image(entry).parent / "full").mkdir()
        await volumes.finish(entry, CLEAN, here.status(entry))
        assert Watched.removed_at_once == []
        assert list((here.root / "branches").iterdir()) == list((here.root / "_staged").iterdir()) == []
        await volumes.aclose()
