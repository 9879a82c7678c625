"""The disk for caches of a simulated Mac behaves as a real one where the agent could be fooled."""

import asyncio
from pathlib import Path

from applecart.clock import Clock
from applecart.sim.cache_tools import BOOT_DEVICE, EMPTY_BYTES, Image, Remote, read_image, write_image
from applecart.sim.mac import SimulatedMac
from applecart.tart.mac import Ended
from tests.virtual_time import elapse

GIB = 1 << 30
URL = "https://objects.example.com/x"


async def run(mac: SimulatedMac, *argv: object) -> Ended:
    return await mac.run([str(word) for word in argv], deadline_s=None)


def a_mac(tmp_path: Path, clock: Clock) -> tuple[SimulatedMac, Path]:
    mac = SimulatedMac(tmp_path / "tart", clock)
    mac.cache.mount(tmp_path / "caches", 10 * GIB)
    return mac, tmp_path / "caches"


async def test_only_a_mounted_root_lies_on_a_device_of_its_own(tmp_path: Path, clock: Clock) -> None:
    mac, root = a_mac(tmp_path, clock)
    inside, outside = (await run(mac, "/usr/bin/stat", "-f", "%d", root, root.parent)).out.split()
    assert inside != outside == str(BOOT_DEVICE).encode()
    mac.cache.is_mounted = False
    inside, outside = (await run(mac, "/usr/bin/stat", "-f", "%d", root, root.parent)).out.split()
    assert inside == outside
    assert (await run(mac, "/usr/bin/stat", "-f", "%d", root / "nowhere")).code == 1


async def test_clones_share_their_blocks_and_everything_else_takes_room(tmp_path: Path, clock: Clock) -> None:
    mac, root = a_mac(tmp_path, clock)
    write_image(root / "a.sparseimage", Image({"x": 1}, 3 * GIB))
    assert (await run(mac, "/bin/cp", "-c", root / "a.sparseimage", root / "b.sparseimage")).code == 0
    assert mac.disk(root).free_bytes == 7 * GIB
    assert (await run(mac, "/usr/bin/hdiutil", "create", "-quiet", root / "c.sparseimage")).code == 0
    assert mac.disk(root).free_bytes == 7 * GIB - EMPTY_BYTES
    assert mac.disk(root.parent).free_bytes > 10 * GIB


async def test_a_copy_follows_links_and_one_that_is_killed_leaves_half_an_image(tmp_path: Path, clock: Clock) -> None:
    mac, root = a_mac(tmp_path, clock)
    write_image(root / "a.sparseimage", Image({"x": 1}, GIB))
    (root / "link").symlink_to(root / "a.sparseimage")
    await run(mac, "/bin/cp", "-c", root / "link", root / "b.sparseimage")
    assert read_image(root / "b.sparseimage") == Image({"x": 1}, GIB)
    before = len(mac.table.all())
    copying = asyncio.create_task(run(mac, "/bin/cp", "-c", root / "link", root / "c.sparseimage"))
    await elapse(0.01)
    assert len(mac.table.all()) == before + 1
    copying.cancel()
    await asyncio.gather(copying, return_exceptions=True)
    assert (root / "c.sparseimage").exists()
    assert read_image(root / "c.sparseimage") is None


async def test_an_attached_image_shows_its_files_until_it_is_detached(tmp_path: Path, clock: Clock) -> None:
    mac, root = a_mac(tmp_path, clock)
    write_image(root / "a.sparseimage", Image({"tuist/Binaries/x": 7}))
    mount = root / "mnt"
    mount.mkdir()
    assert (await run(mac, "hdiutil", "attach", "-mountpoint", mount, root / "a.sparseimage")).code == 0
    assert (mount / "tuist" / "Binaries" / "x").stat().st_size == 7
    assert (await run(mac, "hdiutil", "detach", mount, "-force")).code == 0
    assert list(mount.iterdir()) == []
    assert (await run(mac, "hdiutil", "detach", mount, "-force")).code == 1
    (root / "bad.sparseimage").write_bytes(b"no image")
    assert (await run(mac, "hdiutil", "attach", "-mountpoint", mount, root / "bad.sparseimage")).code == 1


async def test_curl_ends_as_the_real_one_does(tmp_path: Path, clock: Clock) -> None:
    """The codes were seen with curl 7.88: 18 cut off, 22 refused, also when nothing is left; 33 no ranges; 1 wrong scheme."""
    mac, root = a_mac(tmp_path, clock)
    out, config = root / "x.part", root / "config"
    config.write_text(f'url = "{URL}"\n')
    words = ("curl", "-C", "-", "-o", out, "-K", config, "-w", "%{http_code}")
    assert (await run(mac, *words)).code == 22
    mac.cache.remotes[URL] = Remote(Image({"x": 1}, GIB), breaks_at=[GIB // 2])
    assert (await run(mac, *words)).code == 18
    assert out.stat().st_size == GIB // 2
    mac.cache.remotes[URL].serves_ranges = False
    assert (await run(mac, *words)).code == 33
    mac.cache.remotes[URL].serves_ranges = True
    assert (await run(mac, *words)).code == 0
    assert read_image(out) == Image({"x": 1}, GIB)
    ended = await run(mac, *words)
    assert (ended.code, ended.out) == (22, b"416")
    config.write_text('url = "file:///etc/passwd"\n')
    assert (await run(mac, *words)).code == 1


async def test_two_writers_spoil_their_file_for_good_and_no_other(tmp_path: Path, clock: Clock) -> None:
    """A file system gives the inode of a file that is gone to the next one."""
    mac, root = a_mac(tmp_path, clock)
    out, config = root / "x.part", root / "config"
    config.write_text(f'url = "{URL}"\n')
    mac.cache.remotes[URL] = Remote(Image({"x": 1}, GIB), breaks_at=[GIB // 2, GIB // 4])
    words = ("curl", "-C", "-", "-o", out, "-K", config)
    await asyncio.gather(run(mac, *words), run(mac, *words))
    assert (await run(mac, *words)).code == 0  # goes on behind what is spoilt
    assert out.stat().st_size == GIB
    assert read_image(out) is None
    out.write_bytes(b"")  # another file, on the same inode
    assert (await run(mac, *words)).code == 0
    assert read_image(out) == Image({"x": 1}, GIB)


async def test_words_that_no_program_knows_are_refused(tmp_path: Path, clock: Clock) -> None:
    mac, _ = a_mac(tmp_path, clock)
    for argv in (["cp"], ["hdiutil"], ["chmod", "x"], ["stat"], ["chmod", "0666", str(tmp_path / "nowhere")]):
        assert (await run(mac, *argv)).code != 0
