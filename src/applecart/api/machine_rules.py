"""The CEL rules of a machine: what may never change under a claimed host, and values that could only fail later.

A rule stands as close to its field as it can: the API server lets an old bad value pass as long as the part of the object
that holds the rule is unchanged, so a tightened rule does not lock people out of objects they already have. Only what must
see status and spec together stands at the root.

Kept to plain CEL (`has`, `matches`, comparison), so that every CEL engine can judge it.
"""

from applecart.api.names import PROVIDER_ID_SCHEME
from applecart.api.schema import Rule

_ZONE = "[a-z]+(-[a-z]+)*-[0-9]+"
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

PROVIDER_ID_FORM = Rule(
    rule=f"self.matches('^{PROVIDER_ID_SCHEME}{_ZONE}/{_UUID}$')",
    message=f"providerID must be {PROVIDER_ID_SCHEME}ZONE/SERVER-UUID in lower case; "
    "leave it out and the provider writes it when it claims a host",
)

OS_IS_A_FAMILY = Rule(
    rule="self != '' && !self.matches('[0-9]')",
    message="os must be a macOS family without a version, such as Tahoe instead of macos-tahoe-26.3; "
    "the provider picks the newest version of the family",
)

RUNNER_VERSION_GIVEN = Rule(
    rule="self.ghRunnerVersion != ''",
    message="ghActionsRunner.ghRunnerVersion must not be empty; write the version of the runner agent to install first",
    field_path=".ghRunnerVersion",
    reason="FieldValueRequired",
)

# Found out at run time it costs a claimed host. No machine without it ever worked, so asking for it loses none.
APP_SECRET_NAMED = Rule(
    rule="has(self.ghAppSecretName) && self.ghAppSecretName != ''",
    message="ghActionsRunner.ghAppSecretName must name the Secret with the GitHub App; "
    "without it the runner cannot register, so name it or remove ghActionsRunner",
    field_path=".ghAppSecretName",
    reason="FieldValueRequired",
)

# By the old object: whoever gives a host up and changes the machine does so in two writes.
_HOLDS_A_HOST = (
    "(has(oldSelf.status) && has(oldSelf.status.serverID) && oldSelf.status.serverID != '')"
    " || (has(oldSelf.spec.providerID) && oldSelf.spec.providerID != '')"
)


def _fixed_once_claimed(name: str) -> Rule:
    new, old = (f"(has({side}.spec.{name}) ? {side}.spec.{name} : '')" for side in ("self", "oldSelf"))
    return Rule(
        rule=f"!({_HOLDS_A_HOST}) || {new} == {old}",
        message=f"spec.{name} cannot change while the machine holds a host; "
        "delete the Machine and its set makes a new one from the template",
        field_path=f".spec.{name}",
        reason="FieldValueForbidden",
    )


IDENTIFYING_FIELDS = ("type", "zone", "os", "adoptPoolPrefix", "fleetName")
IDENTITY_IS_FIXED = tuple(_fixed_once_claimed(name) for name in IDENTIFYING_FIELDS)
