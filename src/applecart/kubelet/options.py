"""What tart-kubelet was told: its flags, the variables behind some of them, and their defaults.

A flag wins over its variable, and an empty variable is one that is not set (only for screen access does empty mean off). Every
bad value becomes a sentence that names the flag or variable (I14). Looks at nothing but the arguments and the environment it
is given: no file is opened and no address is looked up. The names are known to plists and charts and do not change.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, NoReturn, cast, get_args

import msgspec

from applecart import __version__
from applecart.api import env
from applecart.errors import BadInput
from applecart.kubelet import option_values as values
from applecart.kubelet.serve.scrape_sources import GUESTS
from applecart.observe.logs import LEVELS, LogFormat

AUTO, TAILSCALE = "auto", "tailscale"
PROGRAM = "tart-kubelet"
IGNORED_PREFIX = "--zap-"  # flags of the logging library of older agents; plists still carry them
DESCRIPTION = """\
The agent of one Mac: registers it as a Node and runs every Pod bound to it as
one Tart VM.
Runs as the user who is logged in on the screen, usually from launchd."""
EXAMPLE = f"""\
example:
  {PROGRAM} --kubeconfig /etc/tart-kubelet/kubeconfig --node-name mac-1 \\
    --node-labels tuist.dev/fleet=ci --max-pods 2"""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    node_name: str
    provider_id: str
    node_ip: str
    node_ip_source: str
    scrape_allowed_cidr: tuple[values.Network, ...]  # empty: the built-in list
    node_labels: Mapping[str, str]
    host_cpu: int
    host_memory_mb: int
    max_pods: int
    metrics_bind_address: str
    health_probe_bind_address: str
    tart_binary: str
    vnc_control_dir: Path | None  # None: no screen access
    vnc_relay_host: str
    vnc_relay_port: int
    runner_cache_root: Path | None  # None: no cache volumes
    cache_volume_cap_gib: int
    cache_volume_cas_gib: int
    disable_vm_gc: bool
    kubeconfig: str | None  # None: `applecart.kube.connect` looks at KUBECONFIG and on
    context: str | None
    state_dir: Path
    userdata_dir: Path
    vm_log_dir: Path
    tart_home: Path
    boot_deadline: int  # seconds
    scratch_vm_image: str
    kubelet_bind_address: str
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    client_ca_file: Path | None
    log_level: str
    log_format: LogFormat | None
    ignored: tuple[str, ...] = ()  # flags that were given and mean nothing here
    warnings: tuple[str, ...] = ()  # sentences to log at the start

    @property
    def tls_files(self) -> tuple[Path, Path, Path]:
        """Of the server for logs, exec and usage, where it is on: certificate, key, authority of callers."""
        found = (self.tls_cert_file, self.tls_private_key_file, self.client_ca_file)
        assert None not in found  # `parse` refuses a part of them
        return cast("tuple[Path, Path, Path]", found)

    @property
    def kubelet_bind(self) -> values.Bind | None:
        """Where logs, exec and usage are served; None when they are not."""
        return values.host_and_port(self.kubelet_bind_address) if self.client_ca_file else None


class _Flag(msgspec.Struct, frozen=True):
    name: str
    default: str
    check: Callable[[Any], Any]
    help: str
    variable: str = ""
    is_switch: bool = False
    is_repeated: bool = False
    empty_counts: bool = False  # a variable that is set to nothing says something


def _flags(home: str, hostname: str) -> tuple[_Flag, ...]:
    path, maybe = values.folder(home), values.optional_path(home)
    number, text = values.number, values.text
    return (
        _Flag("node-name", "", values.node_name_or(hostname), "the host's own by default", env.KUBELET_NODE_NAME),
        _Flag("provider-id", "", values.provider_id, "spec.providerID of the Node", env.KUBELET_PROVIDER_ID),
        _Flag("node-ip", "", values.address, "address of the host; wins over --node-ip-source", env.KUBELET_NODE_IP),
        _Flag(
            "node-ip-source",
            AUTO,
            values.one_of(AUTO, TAILSCALE),
            "auto: first address of an interface; tailscale: the tailnet's, or do not start",
            env.KUBELET_NODE_IP_SOURCE,
        ),
        _Flag(
            "scrape-allowed-cidr", "", values.networks, "who may read guests' metrics and screens; repeatable", is_repeated=True
        ),
        _Flag("node-labels", "", values.labels, "labels of the Node: key=value,key=value", env.KUBELET_NODE_LABELS),
        _Flag("host-cpu", "8", number(1), "cores the Node offers"),
        _Flag("host-memory-mb", "16384", number(1), "memory the Node offers, in MiB"),
        _Flag("max-pods", "2", number(1), "Pods the Node offers; Apple allows two macOS guests"),
        _Flag("metrics-bind-address", ":8080", values.bind, "where /metrics is served; 0 switches it off"),
        _Flag("health-probe-bind-address", ":8081", values.bind, "where /healthz and /readyz are served; 0 switches it off"),
        _Flag("tart-binary", "/usr/local/bin/tart", lambda given: str(path(given)), "the Tart program"),
        _Flag(
            "vnc-control-dir",
            "/var/lib/tart-vnc-control",
            maybe,
            "folder of screen requests; empty switches screen access off",
            env.KUBELET_VNC_CONTROL_DIR,
            empty_counts=True,
        ),
        _Flag("vnc-relay-host", "", text, "host told to viewers; the node's address by default", env.KUBELET_VNC_RELAY_HOST),
        _Flag(
            "vnc-relay-port", "0", number(0, values.LARGEST_PORT), "port of the relay; 0 takes any", env.KUBELET_VNC_RELAY_PORT
        ),
        _Flag("runner-cache-root", "", maybe, "mount point of cache volumes; empty: none", env.KUBELET_RUNNER_CACHE_ROOT),
        _Flag("cache-volume-cap-gib", "20", number(1), "size of a cache volume", env.KUBELET_CACHE_VOLUME_CAP_GIB),
        _Flag("cache-volume-cas-gib", "0", number(0), "compiler cache inside it; 0: none", env.KUBELET_CACHE_VOLUME_CAS_GIB),
        _Flag("disable-vm-gc", "false", values.switch, "delete nothing by itself, for hosts that build images", is_switch=True),
        _Flag("kubeconfig", "", text, "how to reach the API; else KUBECONFIG, the Pod, ~/.kube/config"),
        _Flag("context", "", text, "context of the kubeconfig"),
        _Flag("state-dir", "/var/lib/tart-kubelet", path, "the agent's memory"),
        _Flag("userdata-dir", "/var/lib/tart-userdata", values.shared_folder(home), "folders shared with guests"),
        _Flag("vm-log-dir", "/var/log/tart-vms", path, "one log per VM"),
        _Flag("tart-home", "~/.tart", path, "Tart's VMs and cache", env.TART_HOME),
        _Flag("boot-deadline", "600", number(1), "seconds until a VM without an address has failed"),
        _Flag("scratch-vm-image", "", values.image, "boot a VM of this image once an hour, to see whether the host can"),
        _Flag("kubelet-bind-address", ":10250", values.bind, "where logs, exec and usage are served; needs the next three"),
        _Flag("tls-cert-file", "", maybe, "certificate of that server"),
        _Flag("tls-private-key-file", "", maybe, "its key"),
        _Flag("client-ca-file", "", maybe, "authority that signs the certificates of callers"),
        _Flag("log-level", "info", values.one_of(*LEVELS), "how much is logged"),
        _Flag("log-format", "", values.one_of("", *get_args(LogFormat)), "text on a terminal and json elsewhere by default"),
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message}; run {PROGRAM} --help for all flags")


def parse(argv: Sequence[str], environ: Mapping[str, str], *, hostname: str | None = None) -> Options:
    """Raises `BadInput`; `--help` and `--version` print and raise SystemExit(0)."""
    flags = _flags(environ.get("HOME") or "", (os.uname().nodename if hostname is None else hostname).strip().lower())
    rest, ignored = _without_ignored(argv)
    given = vars(_parser(flags).parse_args(rest))
    found = {_field(flag): _value(flag, given[_field(flag)], environ) for flag in flags}
    for name in ("kubeconfig", "context", "log_format"):
        found[name] = found[name] or None
    _refuse_half_a_server(found)
    warnings = [f"{flag} is ignored: use --log-level and --log-format" for flag in ignored]
    if found["cache_volume_cas_gib"] >= found["cache_volume_cap_gib"]:
        warnings.append("--cache-volume-cas-gib is not below --cache-volume-cap-gib and will be cut to fit")
    warnings += [
        f"--node-labels: {key} is always {value} on this Node, whatever is given"
        for key, value in values.fixed_labels(found["node_name"]).items()
        if found["node_labels"].get(key, value) != value
    ]
    warnings += [
        f"--scrape-allowed-cidr {network} lies in {GUESTS}, the network of guests, and nobody there is answered"
        for network in found["scrape_allowed_cidr"]
        if isinstance(network, IPv4Network) and network.subnet_of(GUESTS)
    ]
    return Options(**found, ignored=tuple(ignored), warnings=tuple(warnings))


def _parser(flags: Sequence[_Flag]) -> argparse.ArgumentParser:
    parser = _Parser(
        PROGRAM,
        usage=f"{PROGRAM} [flags]",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    for flag in flags:
        said = [flag.help, *([f"[{flag.default}]"] if flag.default else []), *([f"({flag.variable})"] if flag.variable else [])]
        more: dict[str, Any] = {"nargs": "?", "const": "true"} if flag.is_switch else {}
        parser.add_argument(
            f"--{flag.name}",
            help=" ".join(said).replace("%", "%%"),
            metavar="true|false" if flag.is_switch else flag.name.rpartition("-")[2].upper(),
            action="append" if flag.is_repeated else "store",
            **more,
        )
    return parser


def _field(flag: _Flag) -> str:
    return flag.name.replace("-", "_")


def _value(flag: _Flag, given: Any, environ: Mapping[str, str]) -> Any:
    """The flag, else its variable, else its default; each checked, each named in what is said about it."""
    variable = environ.get(flag.variable) if flag.variable else None
    if given is not None:
        source, written = f"--{flag.name}", given
    elif variable or (variable is not None and flag.empty_counts):
        source, written = f"the variable {flag.variable}", variable
    else:
        source, written = f"--{flag.name}", [] if flag.is_repeated else flag.default
    try:
        return flag.check(written)
    except ValueError as error:
        shown = "" if flag.is_repeated else f" {values.shown(written)}"
        raise BadInput(f"{source}{shown} {error}") from None


def _without_ignored(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    rest: list[str] = []
    ignored: list[str] = []
    takes_value = False
    for word in argv:
        if word.startswith(IGNORED_PREFIX):
            name, equals, _ = word.partition("=")
            ignored.append(name)
            takes_value = not equals
        elif takes_value and not word.startswith("-"):
            takes_value = False
        else:
            takes_value = False
            rest.append(word)
    return rest, ignored


def _refuse_half_a_server(found: Mapping[str, Any]) -> None:
    three = ("tls_cert_file", "tls_private_key_file", "client_ca_file")
    missing = ["--" + name.replace("_", "-") for name in three if not found[name]]
    if missing and len(missing) < len(three):
        raise BadInput(f"logs and exec cannot be served without {' and '.join(missing)}; give all three flags or none")
