"""Every kind of `applecart.api`, found by walking its modules, so that a new kind is tested without being listed."""

import importlib
import pkgutil

import applecart.api
from applecart.api.meta import Object


def all_kinds() -> list[type[Object]]:
    for module in pkgutil.walk_packages(applecart.api.__path__, "applecart.api."):
        importlib.import_module(module.name)
    ours = (kind for kind in Object.__subclasses__() if kind.__module__.startswith("applecart.api."))
    return sorted((kind for kind in ours if "resource" in vars(kind)), key=kind_id)


def kind_id(kind: type[Object]) -> str:
    return f"{kind.resource.api_version}.{kind.__name__}"
