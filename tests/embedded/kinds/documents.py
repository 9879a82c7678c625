"""Small documents that tests start from; every call gives a fresh one."""

from typing import Any


def container(**members: Any) -> dict[str, Any]:
    return {"name": "main", "image": "ghcr.io/acme/macos:14", **members}


def pod(name: str = "runner", *, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    spec.setdefault("containers", [container()])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(meta or {})}, "spec": spec}


def pod_with(**members: Any) -> dict[str, Any]:
    """A Pod whose one container has these members."""
    return pod(containers=[container(**members)])


def core(kind: str, name: str = "thing", *, meta: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **(meta or {})}, **members}


def grouped(api_version: str, kind: str, name: str = "thing", **members: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **members}


def rbac(kind: str, name: str = "thing", **members: Any) -> dict[str, Any]:
    return grouped("rbac.authorization.k8s.io/v1", kind, name, **members)
