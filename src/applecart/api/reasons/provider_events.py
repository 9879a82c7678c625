"""What the provider tells the event log of a ScalewayAppleSiliconMachine.

An Event whose word is also a condition's reason takes it from `provider.py`. Messages are free text; the word is what
runbooks and alerts match on.
"""

from typing import Final

from applecart.api.reasons import EventType, normal, provider, warning

ADOPTING: Final = normal("Adopting", "looking for a free host in the pool")
ADOPTED: Final = normal("Adopted", "a host is claimed")
PROVISIONED: Final = normal("Provisioned", "the host's credentials are stored; converging can begin")
CREDENTIALS_RECLAIMED: Final = normal("CredentialsReclaimed", "a missing password was obtained from Scaleway")
BOOTSTRAPPING: Final = normal("Bootstrapping", "converging the host")
BOOTSTRAPPED: Final = normal("Bootstrapped", "the host is converged")
REBOOTING_FOR_RECOVERY: Final = normal("RebootingForRecovery", "repeated failures; the host is rebooted once")
BOOTSTRAP_EXHAUSTED: Final = normal("BootstrapExhausted", "the host was given up and returned to its pool")
AGENT_ROLLED: Final = normal("AgentRolled", "the host took the current configuration")
AGENT_ROLL_RETRIED: Final = normal("AgentRollRetried", "a host that had given up on an update is tried again")
RELEASING: Final = normal("Releasing", "the host is being returned to its pool")
RELEASED: Final = normal("Released", "the host is back in its pool and being wiped")
PROVISIONING: Final = normal("Provisioning", "no longer recorded: a server was being ordered")

NO_ADOPT_POOL_PREFIX: Final = provider.NO_ADOPT_POOL_PREFIX.as_event(EventType.WARNING)
INVALID_OS_PIN: Final = provider.INVALID_OS_PIN.as_event(EventType.WARNING)
NO_AVAILABLE_HOST: Final = provider.NO_AVAILABLE_HOST.as_event(EventType.WARNING)
CREDENTIALS_REFRESH_FAILED: Final = provider.CREDENTIALS_REFRESH_FAILED.as_event(EventType.WARNING)
MISSING_SUDO_PASSWORD: Final = provider.MISSING_SUDO_PASSWORD.as_event(EventType.WARNING)
NODE_MISSING: Final = provider.NODE_MISSING.as_event(EventType.WARNING)
GH_RUNNER_REGISTRATION_TOKEN_UNAVAILABLE: Final = provider.GH_RUNNER_REGISTRATION_TOKEN_UNAVAILABLE.as_event(EventType.WARNING)
BOOTSTRAP_FAILED: Final = provider.BOOTSTRAP_FAILED.as_event(EventType.WARNING)
UPDATE_EXCEEDED_RETRIES: Final = provider.UPDATE_EXCEEDED_RETRIES.as_event(EventType.WARNING)

PROVISIONING_FAILED: Final = warning("ProvisioningFailed", "claiming a host or storing its credentials failed")
REBOOT_FOR_RECOVERY_FAILED: Final = warning("RebootForRecoveryFailed", "Scaleway refused the reboot; it is asked again")
RELEASE_FAILED: Final = warning("ReleaseFailed", "the host could not be returned to its pool; it is tried again")
RELEASE_SKIPPED: Final = warning("ReleaseSkipped", "no pool is known, so the host was left as it is")
OS_PIN_UNAVAILABLE: Final = warning(
    "OSPinUnavailable", "Scaleway no longer offers the macOS family; the host is wiped with the default image"
)
BOOTSTRAP_SECRET_DELETE_FAILED: Final = warning(
    "BootstrapSecretDeleteFailed", "the old host's credentials remain; its pinned key would refuse the next host"
)
AGENT_ROLL_FAILED: Final = warning("AgentRollFailed", "the host did not take the current configuration")
EGRESS_SERVICE_FAILED: Final = warning("EgressServiceFailed", "the Service towards the host could not be written")
DELETE_FAILED: Final = warning("DeleteFailed", "something of a deleted machine could not be removed; it is tried again")
