"""What a container of a Pod may say: its name, image, ports, variables, probes, hooks, resources, and who it runs as.

Problems are collected in the order a real server finds them, so that messages with several of them are equal.
"""

from typing import Any

from applecart.embedded.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from applecart.embedded.kinds.names import (
    NEGATIVE,
    PORT_SAID,
    PROTOCOLS,
    config_key_problems,
    env_name_problems,
    header_name_problems,
    label_problems,
    port_name_problems,
    subdomain_problems,
    validate_choice,
    validate_name,
    validate_port,
)
from applecart.embedded.kinds.pod_volumes import (
    ENV_FIELDS,
    descending_path,
    validate_field_ref,
    validate_mounts,
    validate_resource_field_ref,
)
from applecart.embedded.kinds.resources import validate_requirements

INIT_ONLY_SAID = "may not be set for init containers without restartPolicy=Always"
RULES_MAX = 20  # restart rules of one container
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_HOOKS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_SCHEMES = ("HTTP", "HTTPS")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
ID_MAX = 2**31 - 1
ID_SAID = f"must be between 0 and {ID_MAX}, inclusive"
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_GROUP_CHANGES = ("Always", "OnRootMismatch")


def validate_containers(spec: dict[str, Any], volumes: set[str], errors: list[FieldError]) -> None:
    path = "spec.containers"
    containers = spec.get("containers") or []
    if not containers:
        errors.append(required(path))
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        _validate_container(container, volumes, at, errors)
        name = container.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        if container.get("lifecycle") is not None:
            validate_lifecycle(container["lifecycle"], spec, f"{at}.lifecycle", errors)
        validate_probes(container, spec, at, errors)
        _validate_restart(container, at, errors)
    _validate_host_ports(containers, path, errors)


def validate_init_containers(spec: dict[str, Any], volumes: set[str], errors: list[FieldError]) -> None:
    path = "spec.initContainers"
    names = {container.get("name") or "" for container in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        at = f"{path}[{index}]"
        _validate_container(container, volumes, at, errors)
        _validate_restart(container, at, errors)
        name = container.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        elif name:
            names.add(name)
        _validate_host_ports([container], path, errors)
        if container.get("restartPolicy") == "Always":
            if container.get("lifecycle") is not None:
                validate_lifecycle(container["lifecycle"], spec, f"{at}.lifecycle", errors)
            validate_probes(container, spec, at, errors)
        else:
            errors += [forbidden(f"{at}.{hook}", INIT_ONLY_SAID) for hook in _HOOKS if container.get(hook) is not None]


def validate_images(spec: dict[str, Any], errors: list[FieldError]) -> None:
    for group in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(group) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                errors.append(invalid(f"spec.{group}[{index}].image", image, "must not have leading or trailing whitespace"))


def _validate_container(container: dict[str, Any], volumes: set[str], at: str, errors: list[FieldError]) -> None:
    validate_name(container.get("name") or "", f"{at}.name", label_problems, errors)
    if not container.get("image"):
        errors.append(required(f"{at}.image"))
    validate_choice(container.get("terminationMessagePolicy"), f"{at}.terminationMessagePolicy", _MESSAGE_POLICIES, errors)
    if container.get("ports"):
        _validate_ports(container["ports"], f"{at}.ports", errors)
    if container.get("env"):
        for index, variable in enumerate(container["env"]):
            here = f"{at}.env[{index}]"
            validate_name(variable.get("name") or "", f"{here}.name", env_name_problems, errors)
            if (source := variable.get("valueFrom")) is not None:
                _validate_value_from(source, variable.get("value") or "", f"{here}.valueFrom", errors)
    if container.get("envFrom"):
        _validate_env_from(container["envFrom"], f"{at}.envFrom", errors)
    validate_mounts(container, volumes, f"{at}.volumeMounts", errors)
    validate_choice(container.get("imagePullPolicy"), f"{at}.imagePullPolicy", _PULL_POLICIES, errors)
    validate_requirements(container.get("resources"), f"{at}.resources", errors)
    if container.get("securityContext"):
        validate_security_context(container["securityContext"], f"{at}.securityContext", errors)


def _validate_ports(ports: list[dict[str, Any]], path: str, errors: list[FieldError]) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        if name := port.get("name"):
            problems = port_name_problems(name)
            errors += [invalid(f"{at}.name", name, problem) for problem in problems]
            if name in names:
                errors.append(duplicate(f"{at}.name", name))
            elif not problems:
                names.add(name)
        number = port.get("containerPort") or 0
        if number == 0:
            errors.append(required(f"{at}.containerPort"))
        elif not 0 < number < 65536:
            errors.append(invalid(f"{at}.containerPort", number, PORT_SAID))
        host_port = port.get("hostPort") or 0
        if host_port and not 0 < host_port < 65536:
            errors.append(invalid(f"{at}.hostPort", host_port, PORT_SAID))
        protocol = port.get("protocol")
        if not protocol:
            errors.append(required(f"{at}.protocol"))
        elif protocol not in PROTOCOLS:
            errors.append(not_supported(f"{at}.protocol", protocol, PROTOCOLS))


def _validate_host_ports(containers: list[dict[str, Any]], path: str, errors: list[FieldError]) -> None:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            place = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if place in taken:
                errors.append(duplicate(f"{path}[{index}].ports[{number}].hostPort", place))
            taken.add(place)


def _validate_value_from(source: dict[str, Any], value: str, at: str, errors: list[FieldError]) -> None:
    said = [name for name in _ENV_SOURCES if source.get(name) is not None]
    if "fieldRef" in said:
        validate_field_ref(source["fieldRef"], ENV_FIELDS, f"{at}.fieldRef", errors)
    if "resourceFieldRef" in said:
        validate_resource_field_ref(source["resourceFieldRef"], f"{at}.resourceFieldRef", errors, is_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in said:
            ref = source[name].get("name") or ""
            errors += [invalid(f"{at}.{name}.name", ref, problem) for problem in subdomain_problems(ref)]
            validate_name(source[name].get("key") or "", f"{at}.{name}.key", config_key_problems, errors)
    if not said:
        text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        errors.append(invalid(at, "", text))
    elif value:
        errors.append(invalid(at, "", "may not be specified when `value` is not empty"))
    elif len(said) > 1:
        errors.append(invalid(at, "", "may not have more than one field specified at a time"))


def _validate_env_from(sources: list[dict[str, Any]], path: str, errors: list[FieldError]) -> None:
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        if prefix := source.get("prefix"):
            errors += [invalid(f"{at}.prefix", prefix, problem) for problem in env_name_problems(prefix)]
        said = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for kind in said:
            name = source[kind].get("name") or ""
            if not name:
                errors.append(required(f"{at}.{kind}.name"))
            else:
                errors += [invalid(f"{at}.{kind}.name", name, problem) for problem in subdomain_problems(name, is_prefix=True)]
        if not said:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(said) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))


def _validate_restart(container: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None:
        if rules:
            errors.append(required(f"{at}.restartPolicy", "must specify restartPolicy when restart rules are used"))
    elif policy not in _RESTART_POLICIES:
        errors.append(not_supported(f"{at}.restartPolicy", policy, _RESTART_POLICIES))
    if len(rules) > RULES_MAX:
        errors.append(FieldError("TooMany", f"{at}.restartPolicyRules", f"must have at most {RULES_MAX} items", len(rules)))


def validate_probes(container: dict[str, Any], spec: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        here = f"{at}.{name}"
        _validate_handler(probe, spec, here, errors)
        negative = [count for count in _COUNTS if (probe.get(count) or 0) < 0]
        errors += [invalid(f"{here}.{count}", probe[count], NEGATIVE) for count in negative]
        grace_s = probe.get("terminationGracePeriodSeconds")
        if grace_s is not None and grace_s <= 0:
            errors.append(invalid(f"{here}.terminationGracePeriodSeconds", grace_s, "must be greater than 0"))
        if name == "readinessProbe":
            if grace_s is not None:
                errors.append(invalid(f"{here}.terminationGracePeriodSeconds", grace_s, "must not be set for readinessProbes"))
        elif probe.get("successThreshold") != 1:
            errors.append(invalid(f"{here}.successThreshold", probe.get("successThreshold") or 0, "must be 1"))


def validate_lifecycle(lifecycle: dict[str, Any], spec: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            _validate_handler(lifecycle[hook], spec, f"{at}.{hook}", errors)
    if lifecycle.get("stopSignal") is not None and not spec.get("os"):
        errors.append(forbidden(f"{at}.stopSignal", "may not be set for containers with empty `spec.os.name`"))


def _validate_handler(handler: dict[str, Any], spec: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    said = [name for name in _HANDLERS if handler.get(name) is not None]
    if not said:
        errors.append(required(at, "must specify a handler type"))
        return
    first = said[0]
    action, here = handler[first], f"{at}.{first}"
    if first == "exec":
        if not action.get("command"):
            errors.append(required(f"{here}.command"))
    elif first == "httpGet":
        _validate_http(action, here, errors)
    elif first == "sleep":
        seconds, grace_s = action.get("seconds") or 0, spec.get("terminationGracePeriodSeconds")
        if grace_s is not None and not 0 <= seconds <= grace_s:
            text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
            errors.append(invalid(here, seconds, text))
    else:
        validate_port(action.get("port", 0), f"{here}.port", errors)
    errors += [forbidden(f"{at}.{name}", "may not specify more than 1 handler type") for name in said[1:]]


def _validate_http(action: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    if not action.get("path"):
        errors.append(required(f"{at}.path"))
    validate_port(action.get("port", 0), f"{at}.port", errors)
    validate_choice(action.get("scheme"), f"{at}.scheme", _SCHEMES, errors)
    for header in action.get("httpHeaders") or ():
        name = header.get("name") or ""
        errors += [invalid(f"{at}.httpHeaders", name, problem) for problem in header_name_problems(name)]


def validate_pod_security_context(context: dict[str, Any], spec: dict[str, Any], errors: list[FieldError]) -> None:
    at = "spec.securityContext"
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        _validate_id(context.get(name), f"{at}.{name}", errors)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        _validate_id(group, f"{at}.supplementalGroups[{index}]", errors)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        errors.append(invalid(f"{at}.shareProcessNamespace", True, "ShareProcessNamespace and HostPID cannot both be enabled"))
    if (change := context.get("fsGroupChangePolicy")) is not None:
        validate_choice(change, f"{at}.fsGroupChangePolicy", _GROUP_CHANGES, errors)
    _validate_seccomp(context.get("seccompProfile"), f"{at}.seccompProfile", errors)


def validate_security_context(context: dict[str, Any], at: str, errors: list[FieldError]) -> None:
    for name in ("runAsUser", "runAsGroup"):
        _validate_id(context.get(name), f"{at}.{name}", errors)
    _validate_seccomp(context.get("seccompProfile"), f"{at}.seccompProfile", errors)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(at, context, text))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(at, context, text))


def _validate_id(number: int | None, at: str, errors: list[FieldError]) -> None:
    if number is not None and not 0 <= number <= ID_MAX:
        errors.append(invalid(at, number, ID_SAID))


def _validate_seccomp(profile: dict[str, Any] | None, at: str, errors: list[FieldError]) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        errors.append(required(f"{at}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        errors.append(not_supported(f"{at}.type", kind, _PROFILES))
    if kind == "Localhost":
        if local is None:
            errors.append(required(f"{at}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            descending_path(local, f"{at}.localhostProfile", errors)
    elif local is not None:
        errors.append(invalid(f"{at}.localhostProfile", profile, "can only be set when seccomp type is Localhost"))
