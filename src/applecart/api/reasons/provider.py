"""Why a ScalewayAppleSiliconMachine is not where it should be.

Reasons of the conditions `Provisioned` and `Bootstrapped`, and of `status.failureReason`. Severity Error waits for a person,
Warning heals by itself; a fault of the control plane is never blamed on the host (I12).
"""

from typing import Final

from applecart.api.conditions import BOOTSTRAPPED, PROVISIONED
from applecart.api.reasons import ConditionReason, Severity, StatusReason

NO_ADOPT_POOL_PREFIX: Final = ConditionReason(
    "NoAdoptPoolPrefix",
    PROVISIONED,
    Severity.ERROR,
    "neither the machine nor the provider names a pool; no server is even listed",
)
INVALID_OS_PIN: Final = ConditionReason(
    "InvalidOSPin", PROVISIONED, Severity.ERROR, "`spec.os` names a version where a macOS family is wanted"
)
NO_AVAILABLE_HOST: Final = ConditionReason(
    "NoAvailableHost", PROVISIONED, Severity.WARNING, "the pool holds no free host of this type and macOS family"
)
SCALEWAY_ADOPT_FAILED: Final = ConditionReason(
    "ScalewayAdoptFailed", PROVISIONED, Severity.ERROR, "Scaleway refused a call while a host was being claimed"
)
CREDENTIALS_PERSIST_FAILED: Final = ConditionReason(
    "CredentialsPersistFailed",
    PROVISIONED,
    Severity.ERROR,
    "the host is claimed, but its password could not be stored in the cluster",
)
HOST_RELEASED: Final = ConditionReason(
    "HostReleased", PROVISIONED, Severity.WARNING, "the host was given up after too many failures; another is claimed next"
)
SCALEWAY_CREATE_FAILED: Final = ConditionReason(
    "ScalewayCreateFailed",
    PROVISIONED,
    Severity.ERROR,
    "no longer written: an order for a new server was refused; found on machines from before pools",
)

SSH_KEY_UNAVAILABLE: Final = ConditionReason(
    "SSHKeyUnavailable", BOOTSTRAPPED, Severity.ERROR, "the fleet's SSH key is neither stored nor could it be registered"
)
CREDENTIALS_REFRESH_FAILED: Final = ConditionReason(
    "CredentialsRefreshFailed", BOOTSTRAPPED, Severity.WARNING, "Scaleway could not be asked for the missing password"
)
MISSING_SUDO_PASSWORD: Final = ConditionReason(
    "MissingSudoPassword",
    BOOTSTRAPPED,
    Severity.ERROR,
    "Scaleway knows no password for the host; a wrong one would break its automatic login for good",
)
NODE_MISSING: Final = ConditionReason(
    "NodeMissing", BOOTSTRAPPED, Severity.WARNING, "the host was converged, but its Node is gone; it is converged again"
)
NODE_IDENTITY_UNAVAILABLE: Final = ConditionReason(
    "NodeIdentityUnavailable", BOOTSTRAPPED, Severity.WARNING, "the host's own ServiceAccount or token is not there yet"
)
KUBECONFIG_UNAVAILABLE: Final = ConditionReason(
    "KubeconfigUnavailable", BOOTSTRAPPED, Severity.WARNING, "the kubeconfig for the host could not be put together"
)
TAILSCALE_AUTH_KEY_UNAVAILABLE: Final = ConditionReason(
    "TailscaleAuthKeyUnavailable",
    BOOTSTRAPPED,
    Severity.WARNING,
    "a tailnet is configured, but the Secret with its key is missing or empty",
)
GH_RUNNER_REGISTRATION_TOKEN_UNAVAILABLE: Final = ConditionReason(
    "GHRunnerRegistrationTokenUnavailable",
    BOOTSTRAPPED,
    Severity.WARNING,
    "GitHub gave no registration token for the builder's runner",
)
CACHE_PRIVATE_NETWORK_UNAVAILABLE: Final = ConditionReason(
    "CachePrivateNetworkUnavailable",
    BOOTSTRAPPED,
    Severity.WARNING,
    "the host could not be attached to the cache's private network",
)
BOOTSTRAP_FAILED: Final = ConditionReason(
    "BootstrapFailed", BOOTSTRAPPED, Severity.WARNING, "a step on the host failed; the message names the step"
)

UPDATE_EXCEEDED_RETRIES: Final = StatusReason(
    "TartKubeletUpdateExceededRetries",
    "`status.failureReason` of a ScalewayAppleSiliconMachine",
    "the host's configuration could not be updated and is left alone until it changes or a cooldown ends",
)
