"""What makes one guest different from another: hardware identity, serial number, network address."""

from random import Random


def fresh_mac_address(random: Random) -> str:
    """Locally administered, as Virtualization.framework draws them."""
    first = (random.getrandbits(8) | 0x02) & 0xFE
    return ":".join(f"{byte:02x}" for byte in (first, *random.randbytes(5)))


def fresh_serial(random: Random) -> str:
    return "Z" + "".join(random.choices("0123456789ABCDEFGHJKLMNPQRSTUVWXYZ", k=9))


def fresh_ecid(random: Random) -> str:
    return f"{random.getrandbits(64):016x}"


def fresh_disk_id(random: Random) -> str:
    return f"disk-{random.getrandbits(64):016x}"
