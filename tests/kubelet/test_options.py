"""What the agent makes of its flags and variables, and what it says about those it cannot use."""

import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import BadInput
from applecart.kubelet.option_values import host_and_port, is_label
from applecart.kubelet.options import Options, _flags, parse

FLAGS = _flags("/Users/m1", "mac-1")
UUID = "11111111-2222-3333-4444-555555555555"
PROVIDER_ID = f"scw-applesilicon://fr-par-1/{UUID}"
TLS = ["--tls-cert-file=/a", "--tls-private-key-file=/b", "--client-ca-file=/c"]


def parsed(*argv: str, **environ: str) -> Options:
    return parse(argv, {"HOME": "/Users/m1", **environ}, hostname="Mac-1.local")


def refusal(*argv: str, **environ: str) -> str:
    with pytest.raises(BadInput) as caught:
        parsed(*argv, **environ)
    return str(caught.value)


def test_the_defaults_are_those_that_operators_know() -> None:
    assert parsed() == Options(
        node_name="mac-1.local",
        provider_id="",
        node_ip="",
        node_ip_source="auto",
        scrape_allowed_cidr=(),
        node_labels={},
        host_cpu=8,
        host_memory_mb=16384,
        max_pods=2,
        metrics_bind_address=":8080",
        health_probe_bind_address=":8081",
        tart_binary="/usr/local/bin/tart",
        vnc_control_dir=Path("/var/lib/tart-vnc-control"),
        vnc_relay_host="",
        vnc_relay_port=0,
        runner_cache_root=None,
        cache_volume_cap_gib=20,
        cache_volume_cas_gib=0,
        disable_vm_gc=False,
        kubeconfig=None,
        context=None,
        state_dir=Path("/var/lib/tart-kubelet"),
        userdata_dir=Path("/var/lib/tart-userdata"),
        vm_log_dir=Path("/var/log/tart-vms"),
        tart_home=Path("/Users/m1/.tart"),
        boot_deadline=600,
        scratch_vm_image="",
        kubelet_bind_address=":10250",
        tls_cert_file=None,
        tls_private_key_file=None,
        client_ca_file=None,
        log_level="info",
        log_format=None,
    )


@pytest.mark.parametrize(
    ("flag", "value", "field", "meant"),
    [
        ("--node-name", "mac-7", "node_name", "mac-7"),
        ("--provider-id", PROVIDER_ID, "provider_id", PROVIDER_ID),
        ("--provider-id", "vendor://rack-1/mac-7", "provider_id", "vendor://rack-1/mac-7"),
        ("--node-ip", "100.64.0.1", "node_ip", "100.64.0.1"),
        ("--node-ip-source", "tailscale", "node_ip_source", "tailscale"),
        ("--node-labels", " tuist.dev/fleet = ci ,,a=b,c=", "node_labels", {"tuist.dev/fleet": "ci", "a": "b", "c": ""}),
        ("--host-cpu", "10", "host_cpu", 10),
        ("--max-pods", "3", "max_pods", 3),
        ("--metrics-bind-address", "0", "metrics_bind_address", "0"),
        ("--vnc-control-dir", "", "vnc_control_dir", None),
        ("--vnc-relay-port", "5900", "vnc_relay_port", 5900),
        ("--runner-cache-root", "/Volumes/cache", "runner_cache_root", Path("/Volumes/cache")),
        ("--tart-home", "~/tart", "tart_home", Path("/Users/m1/tart")),
        ("--scratch-vm-image", "localhost:5000/team/image:1.2", "scratch_vm_image", "localhost:5000/team/image:1.2"),
        ("--disable-vm-gc", "false", "disable_vm_gc", False),
        ("--log-format", "json", "log_format", "json"),
        ("--kubeconfig", "/etc/tart-kubelet/kubeconfig", "kubeconfig", "/etc/tart-kubelet/kubeconfig"),
    ],
)
def test_a_flag_is_taken_with_an_equals_sign_or_a_space(flag: str, value: str, field: str, meant: object) -> None:
    assert getattr(parsed(f"{flag}={value}"), field) == meant
    assert getattr(parsed(flag, value), field) == meant


def test_every_source_range_counts() -> None:
    networks = parsed("--scrape-allowed-cidr", "10.1.2.3/8", "--scrape-allowed-cidr=fd00::/8").scrape_allowed_cidr
    assert networks == (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8"))


def test_the_collector_is_switched_off_by_the_bare_flag() -> None:
    assert parsed("--disable-vm-gc").disable_vm_gc
    assert parsed("--disable-vm-gc", "--max-pods", "3").disable_vm_gc


@pytest.mark.parametrize(
    ("variable", "value", "field", "meant"),
    [
        ("TART_KUBELET_NODE_NAME", "mac-7", "node_name", "mac-7"),
        ("TART_KUBELET_PROVIDER_ID", PROVIDER_ID, "provider_id", PROVIDER_ID),
        ("TART_KUBELET_NODE_IP", "10.0.0.7", "node_ip", "10.0.0.7"),
        ("TART_KUBELET_NODE_IP_SOURCE", "tailscale", "node_ip_source", "tailscale"),
        ("TART_KUBELET_NODE_LABELS", "a=b", "node_labels", {"a": "b"}),
        ("TART_KUBELET_VNC_CONTROL_DIR", "/vnc", "vnc_control_dir", Path("/vnc")),
        ("TART_KUBELET_VNC_RELAY_HOST", "relay", "vnc_relay_host", "relay"),
        ("TART_KUBELET_VNC_RELAY_PORT", "5900", "vnc_relay_port", 5900),
        ("TART_KUBELET_RUNNER_CACHE_ROOT", "/cache", "runner_cache_root", Path("/cache")),
        ("TART_KUBELET_CACHE_VOLUME_CAP_GIB", "30", "cache_volume_cap_gib", 30),
        ("TART_KUBELET_CACHE_VOLUME_CAS_GIB", "11", "cache_volume_cas_gib", 11),
        ("TART_HOME", "/tart", "tart_home", Path("/tart")),
    ],
)
def test_a_variable_stands_in_for_its_flag_and_the_flag_wins(variable: str, value: str, field: str, meant: object) -> None:
    flag = next(flag for flag in FLAGS if flag.variable == variable)
    assert getattr(parsed(**{variable: value}), field) == meant
    again = {"node_ip_source": "auto", "node_labels": "a=b"}.get(field, getattr(parsed(), field) or value)
    flag_alone = getattr(parsed(f"--{flag.name}={again}"), field)
    assert getattr(parsed(f"--{flag.name}={again}", **{variable: "!"}), field) == flag_alone
    assert getattr(parsed(**{variable: ""}), field) == (None if field == "vnc_control_dir" else getattr(parsed(), field))


@pytest.mark.parametrize(
    ("argv", "environ", "named"),
    [
        (["--host-cpu", "many"], {}, "--host-cpu 'many'"),
        (["--host-cpu", "0"], {}, "from 1"),
        (["--max-pods", "-1"], {}, "--max-pods"),
        (["--vnc-relay-port", "65536"], {}, "from 0 to 65535"),
        ([], {"TART_KUBELET_VNC_RELAY_PORT": "x"}, "TART_KUBELET_VNC_RELAY_PORT 'x'"),
        ([], {"TART_KUBELET_CACHE_VOLUME_CAP_GIB": "1e3"}, "TART_KUBELET_CACHE_VOLUME_CAP_GIB"),
        (["--node-labels", "fleet"], {}, "key=value"),
        (["--node-labels", "=ci"], {}, "key=value"),
        (["--node-labels", "a=b c"], {}, "does not take as a label"),
        ([], {"TART_KUBELET_NODE_LABELS": "fleet"}, "TART_KUBELET_NODE_LABELS"),
        (["--node-name", "Mac_1"], {}, "no name for a Node"),
        (["--node-ip", "300.1.1.1"], {}, "--node-ip '300.1.1.1' is no IP address"),
        (["--node-ip", "fe80::1%en0"], {}, "no IP address"),
        (["--node-ip-source", "dns"], {}, "auto, tailscale"),
        (["--scrape-allowed-cidr", "10.0.0.0"], {}, "no CIDR"),
        (["--scrape-allowed-cidr", "10.0.0.0/8", "--scrape-allowed-cidr", "x/99"], {}, "'x/99'"),
        (["--provider-id", "scw-applesilicon://fr-par-1"], {}, "--provider-id"),
        (["--provider-id", "mac-7"], {}, "provider id"),
        (["--scratch-vm-image", "Not An Image"], {}, "no image reference"),
        (["--metrics-bind-address", "8080"], {}, "host:port"),
        (["--metrics-bind-address", ":70000"], {}, "65535"),
        (["--kubelet-bind-address", "a b:1"], {}, "--kubelet-bind-address"),
        (["--userdata-dir", "/var/a,b"], {}, "Tart would read"),
        (["--state-dir", ""], {}, "is empty"),
        (["--disable-vm-gc=maybe"], {}, "neither true nor false"),
        (["--log-level", "loud"], {}, "debug, info"),
        (["--log-format", "xml"], {}, "json"),
        (["--tls-cert-file", "/a"], {}, "--tls-private-key-file and --client-ca-file"),
        (["--no-such-flag"], {}, "--help"),
        (["--node-name"], {}, "--node-name"),
        (["word"], {}, "word"),
        (["--node", "mac-7"], {}, "--node"),
    ],
)
def test_a_bad_value_is_a_sentence_that_names_it(argv: list[str], environ: dict[str, str], named: str) -> None:
    assert named in refusal(*argv, **environ)


def test_a_host_whose_own_name_cannot_name_a_node_is_told_which_flag_helps() -> None:
    with pytest.raises(BadInput, match=r"--node-name '' leaves it to the host's own name, 'mac_1'"):
        parse([], {}, hostname="Mac_1")


def test_flags_of_the_old_logging_are_ignored_with_a_warning() -> None:
    options = parsed("--zap-log-level=debug", "--zap-encoder", "json", "--zap-devel", "--max-pods", "3")
    assert options.ignored == ("--zap-log-level", "--zap-encoder", "--zap-devel")
    assert len(options.warnings) == 3
    assert options.max_pods == 3


def test_a_compiler_cache_as_large_as_its_volume_is_warned_about() -> None:
    assert "cut to fit" in parsed("--cache-volume-cas-gib=20").warnings[0]
    assert parsed("--cache-volume-cas-gib=11").warnings == ()


def test_a_label_that_the_agent_itself_says_is_told_when_it_says_something_else() -> None:
    (warning,) = parsed("--node-labels=kubernetes.io/hostname=evil,kubernetes.io/os=darwin").warnings
    assert warning == "--node-labels: kubernetes.io/hostname is always mac-1.local on this Node, whatever is given"


def test_scraping_allowed_for_the_network_of_guests_is_told_to_have_no_effect() -> None:
    assert "192.168.65.0/24 lies in 192.168.64.0/22" in parsed("--scrape-allowed-cidr=192.168.65.0/24").warnings[0]
    assert parsed("--scrape-allowed-cidr=192.168.0.0/16", "--scrape-allowed-cidr=fd00::/8").warnings == ()


def test_a_node_name_is_a_label_too() -> None:
    """The API refuses the label of a longer one, and with it the whole Node, for ever."""
    assert parsed(f"--node-name={'a' * 63}").node_name == "a" * 63
    with pytest.raises(BadInput, match="at most 63 characters"):
        parsed(f"--node-name={'a' * 64}")


def test_a_folder_in_no_home_is_refused() -> None:
    with pytest.raises(BadInput, match="HOME is not set"):
        parse([], {}, hostname="mac-1")


def test_logs_and_exec_are_served_only_with_all_three_files() -> None:
    assert parsed().kubelet_bind is None
    assert parsed(*TLS).kubelet_bind == ("", 10250)
    assert parsed(*TLS, "--kubelet-bind-address=10.0.0.7:10260").kubelet_bind == ("10.0.0.7", 10260)
    assert parsed(*TLS, "--kubelet-bind-address=0").kubelet_bind is None


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_print_and_end_well(
    flag: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        parsed(flag)
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "tart-kubelet" in said
    if flag == "--help":
        assert [each.name for each in FLAGS if f"--{each.name}" not in said] == []
        assert "example:" in said
        assert [line for line in said.splitlines() if len(line) > 80] == []


def test_an_address_in_brackets_is_taken_apart() -> None:
    assert host_and_port("[fd00::1]:8080") == ("fd00::1", 8080)


WORDS = st.one_of(
    st.sampled_from([f"--{flag.name}" for flag in FLAGS] + ["--zap-x", "--", "-", "--help", "-h", "--version"]),
    st.builds("--{}={}".format, st.sampled_from([flag.name for flag in FLAGS]), st.text(max_size=12)),
    st.text(max_size=12),
)
VARIABLES = st.dictionaries(
    st.sampled_from([flag.variable for flag in FLAGS if flag.variable] + ["HOME"]), st.text(max_size=12)
)


@given(st.lists(WORDS, max_size=6), VARIABLES, st.text(max_size=12))
def test_whatever_is_written_ends_in_options_or_in_a_sentence(argv: list[str], environ: dict[str, str], hostname: str) -> None:
    outcome: Options | BaseException
    try:
        outcome = parse(argv, environ, hostname=hostname)
    except (BadInput, SystemExit) as ended:
        outcome = ended
    match outcome:
        case Options(node_labels=found):
            assert all(is_label(key, value) for key, value in found.items())
        case SystemExit(code=code):
            assert code == 0
            assert {"--help", "-h", "--version"} & set(argv)
        case _:
            assert len(str(outcome)) > 10
