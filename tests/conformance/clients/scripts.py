"""All scripts, in the order they run."""

from tests.conformance.clients import scripts_cluster, scripts_objects

SCRIPTS = (*scripts_objects.SCRIPTS, *scripts_cluster.SCRIPTS)
