"""Plugins that every test gets: virtual time, the guard against secrets that get out, and a real Kubernetes on request."""

pytest_plugins = ["tests.virtual_time", "tests.secret_guard", "tests.kubernetes.fixture"]
