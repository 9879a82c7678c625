"""Kubeconfig files for tests: one context `ci` with one cluster and one user, of which a test sets what it is about."""

import base64
from pathlib import Path
from typing import Any

import yaml


def kubeconfig(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, context: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "ci",
        "contexts": [{"name": "ci", "context": context or {"cluster": "farm", "user": "robot"}}],
        "clusters": [{"name": "farm", "cluster": {"server": "https://10.0.0.1:6443"} if cluster is None else cluster}],
        "users": [{"name": "robot", "user": user or {}}],
    }


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def b64(content: bytes | str) -> str:
    return base64.b64encode(content.encode() if isinstance(content, str) else content).decode()
