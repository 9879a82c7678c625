"""Plugins that every test gets: virtual time, the guard against secrets that get out, and a real Kubernetes on request."""

import signal

from hypothesis import settings

pytest_plugins = ["tests.virtual_time", "tests.secret_guard", "tests.kubernetes.fixture"]

# A shell that starts something in the background has it ignore Ctrl-C, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something about the machine, not about the code.
settings.register_profile("applecart", deadline=None)
settings.load_profile("applecart")
