"""RoleBindings and ClusterRoleBindings as rows: which role, and who has it."""

from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column
from applecart.embedded.kinds.rules import Document
from applecart.embedded.tables.ages import age
from applecart.embedded.tables.columns import AGE_TEXT, NAME, BuiltInTable

COLUMNS = (
    NAME,
    Column("Role", description="The role that is given."),
    AGE_TEXT,
    Column("Users", description="Users it is given to.", priority=1),
    Column("Groups", description="Groups it is given to.", priority=1),
    Column("ServiceAccounts", description="ServiceAccounts it is given to.", priority=1),
)


def binding_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    role = obj.get("roleRef") or {}
    subjects = obj.get("subjects") or ()
    return [
        metadata.get("name", ""),
        f"{role.get('kind') or ''}/{role.get('name') or ''}",
        age(metadata.get("creationTimestamp"), now),
        ", ".join(one.get("name") or "" for one in subjects if one.get("kind") == "User"),
        ", ".join(one.get("name") or "" for one in subjects if one.get("kind") == "Group"),
        ", ".join(
            f"{one.get('namespace') or ''}/{one.get('name') or ''}" for one in subjects if one.get("kind") == "ServiceAccount"
        ),
    ]


BINDINGS = BuiltInTable(COLUMNS, binding_row)
