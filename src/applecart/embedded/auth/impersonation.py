"""Acting as somebody else (`kubectl --as`).

Each thing that is taken on (user, groups, uid, extras) needs the right to `impersonate` it; a service account is taken on as
itself, so the right can be given per namespace. Without groups of their own choice the taken user gets those that go with the
name. What is not said is not inherited from the caller.
"""

import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from applecart.embedded.attributes import Attributes
from applecart.embedded.auth.rbac import Decision, denial
from applecart.embedded.auth.user import (
    ANONYMOUS,
    AUTHENTICATED,
    SERVICE_ACCOUNT_PREFIX,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    User,
)
from applecart.embedded.refusals import bad_request

USER, GROUP, UID, EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
PREFIX = "impersonate-"
AUTHENTICATION = "authentication.k8s.io"
_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_ACCOUNT = re.compile(rf"{SERVICE_ACCOUNT_PREFIX}({_LABEL}):({_LABEL}(?:\.{_LABEL})*)", re.ASCII)


def impersonated(user: User, headers: Iterable[tuple[str, str]], decide: Callable[[User, Attributes], Decision]) -> User | None:
    """The user a request acts as; None when it acts as itself. Raises 403 and 400."""
    wanted = [(name.lower(), value) for name, value in headers if name.lower().startswith(PREFIX)]
    if not wanted:
        return None
    name = next((value for header, value in wanted if header == USER), "")
    uid = next((value for header, value in wanted if header == UID), "")
    groups = [value for header, value in wanted if header == GROUP]
    extras = sorted((_extra_key(header), value) for header, value in wanted if header.startswith(EXTRA))
    if not name:
        if not (uid or groups or extras):
            return None
        raise bad_request(f"requested {_shown(groups, extras, uid)} without impersonating a user")
    account = _ACCOUNT.fullmatch(name)
    for asked in _asked(name, account, uid, groups, extras):
        decision = decide(user, asked)
        if not decision.allowed:
            raise denial(user, asked, decision.reason)
    if account and not groups:
        groups = [SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{account[1]}"]
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in extras:
        extra[key] = (*extra.get(key, ()), value)
    return User(name, _with_everybody(name, groups), uid, extra)


def _asked(
    name: str, account: re.Match[str] | None, uid: str, groups: list[str], extras: list[tuple[str, str]]
) -> Iterable[Attributes]:
    if account:
        yield _attributes("", "serviceaccounts", account[2], namespace=account[1])
    else:
        yield _attributes("", "users", name)
    for group in groups:
        yield _attributes("", "groups", group)
    for key, value in extras:
        yield _attributes(AUTHENTICATION, "userextras", value, subresource=key)
    if uid:
        yield _attributes(AUTHENTICATION, "uids", uid)


def _attributes(group: str, resource: str, name: str, *, namespace: str = "", subresource: str = "") -> Attributes:
    return Attributes(
        verb="impersonate",
        path="",
        is_resource=True,
        group=group,
        version="v1",
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def _with_everybody(name: str, groups: list[str]) -> tuple[str, ...]:
    """With the group of everybody who is known, or of those who are not."""
    if name == ANONYMOUS.name:
        return tuple(groups) if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    is_said = AUTHENTICATED in groups or UNAUTHENTICATED in groups
    return tuple(groups) if is_said else (*groups, AUTHENTICATED)


def _extra_key(header: str) -> str:
    return unquote(header.removeprefix(EXTRA), errors="replace")


def _shown(groups: list[str], extras: list[tuple[str, str]], uid: str) -> str:
    references = [
        *(f"{{Group  {group}    }}" for group in groups),
        *(f"{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}" for key, value in extras),
        *([f"{{UID  {uid}  {AUTHENTICATION}/v1  }}"] if uid else []),
    ]
    return f"[{' '.join(references)}]"
