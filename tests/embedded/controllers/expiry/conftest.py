"""The same embedded API in memory that the Pod garbage is tested on."""

from tests.embedded.controllers.pod_garbage.conftest import network

__all__ = ["network"]
