"""Plugins that every test gets: virtual time, repeatable chance, the guard against secrets that get out, real Kubernetes."""

import gc
import os
import shutil
import signal
from pathlib import Path

import pytest

pytest_plugins = ["tests.virtual_time", "tests.soak", "tests.secret_guard", "tests.kubernetes.fixture"]

# A shell that starts something in the background has it ignore Ctrl-C, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Ten thousand collected tests stay; looking at them again in every collection took a twentieth of all time.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# Nobody pulls the plug of this process, and a real flush takes a tenth of all time. Programs that tests start do flush. An ext4
# flushes each file that is renamed over another one, so where memory is plenty the folders of tests are in it.
os.fsync = lambda fd: None
MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
