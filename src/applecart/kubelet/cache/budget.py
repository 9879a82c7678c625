"""How the bytes of one cache volume are shared out: some for the file system, some for compiler results, the rest for binaries.

Pure. A volume that runs full loses a job's work, so a reserve is kept whatever was asked for, and the compiler's part is cut
before the binaries' part vanishes.
"""

import msgspec

GIB = 1 << 30
LEAST_RESERVE_BYTES = 2 * GIB  # APFS needs room to write a change beside what it replaces
RESERVE_PERCENT = 5
BINARIES_ALONE_PERCENT = 80  # of the volume; what evicts old binaries runs late, so it aims lower than the reserve
LARGEST_CAS_PERCENT = 90  # of what is usable: binaries always keep a tenth


class Budget(msgspec.Struct, frozen=True):
    binary_bytes: int
    cas_bytes: int  # 0: compiler results are not cached


def split(cap_gib: int, cas_gib: int) -> Budget:
    cap = max(0, cap_gib) * GIB
    reserve = min(max(LEAST_RESERVE_BYTES, cap * RESERVE_PERCENT // 100), cap // 2)
    usable = cap - reserve
    if cas_gib <= 0:
        return Budget(min(cap * BINARIES_ALONE_PERCENT // 100, usable), 0)
    cas = min(cas_gib * GIB, usable * LARGEST_CAS_PERCENT // 100)
    return Budget(usable - cas, cas)
