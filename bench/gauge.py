"""What a measured process says about itself."""

import ctypes
import gc
import os
import time
from pathlib import Path


def rss_bytes() -> int:
    """Resident memory now, after giving freed memory back: what is held, not what was once needed."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def since_process_start_s() -> float:
    """Seconds since this process was started by the kernel, the interpreter's own start included."""
    started_ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_ticks / os.sysconf("SC_CLK_TCK")
