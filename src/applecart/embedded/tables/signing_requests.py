"""CertificateSigningRequests as rows."""

from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column
from applecart.embedded.kinds.rules import Document
from applecart.embedded.tables.ages import age, duration_text
from applecart.embedded.tables.columns import AGE_TEXT, NAME, NONE, BuiltInTable

COLUMNS = (
    NAME,
    AGE_TEXT,
    Column("SignerName", description="Who is asked to sign."),
    Column("Requestor", description="The user that asks."),
    Column("RequestedDuration", description="How long the certificate shall be good."),
    Column("Condition", description="How far the request is."),
)


def signing_request_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    return [
        metadata.get("name", ""),
        age(metadata.get("creationTimestamp"), now),
        spec.get("signerName") or NONE,
        spec.get("username") or "",
        NONE if seconds is None else duration_text(seconds),
        _condition(obj.get("status") or {}),
    ]


def _condition(status: dict[str, Any]) -> str:
    present = {one.get("type") for one in status.get("conditions") or ()}
    # A denial wins, whoever approved as well.
    decided = "Denied" if "Denied" in present else ("Approved" if "Approved" in present else "Pending")
    failed = ",Failed" if "Failed" in present else ""
    return f"{decided}{failed}{',Issued' if status.get('certificate') else ''}"


SIGNING_REQUESTS = BuiltInTable(COLUMNS, signing_request_row)
