"""What `/version` says: which Kubernetes this server behaves like, and that it is not that Kubernetes.

Clients choose behaviour by major and minor; people read `+embedded` in `kubectl version` and know what they talk to.
"""

import platform

MAJOR, MINOR, PATCH = 1, 36, 3
GIT_VERSION = f"v{MAJOR}.{MINOR}.{PATCH}+embedded"
BUILD_DATE = "1970-01-01T00:00:00Z"  # nothing of this server is built on a date

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def version_document() -> dict[str, str]:
    machine = platform.machine().lower()
    return {
        "major": str(MAJOR),
        "minor": str(MINOR),
        "emulationMajor": str(MAJOR),
        "emulationMinor": str(MINOR),
        "minCompatibilityMajor": str(MAJOR),
        "minCompatibilityMinor": str(MINOR - 1),
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": BUILD_DATE,
        "goVersion": "",
        "compiler": "",
        "platform": f"{platform.system().lower()}/{_ARCHITECTURES.get(machine, machine)}",
    }
