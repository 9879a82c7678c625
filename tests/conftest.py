"""Plugins that every test gets: virtual time, repeatable chance, the guard against secrets that get out, real Kubernetes."""

import os
import signal

pytest_plugins = ["tests.virtual_time", "tests.soak", "tests.secret_guard", "tests.kubernetes.fixture"]

# A shell that starts something in the background has it ignore Ctrl-C, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Nobody pulls the plug of this process, and a real one takes a tenth of all time. Programs that tests start do flush.
os.fsync = lambda fd: None
