"""The command lines of the cluster's programs."""

from pathlib import Path

import pytest

from applecart.embedded.binaries import flags
from applecart.embedded.trust.pki import pair_files

PKI = Path("/run/pki")
TRUST = flags.Trust(*(pair_files(PKI, name) for name in ("ca", "server", "sa", "kubelet", "etcd-ca", "etcd", "etcd-client")))
PORTS = flags.Ports(*range(1001, 1004))


def all_flags() -> dict[str, list[str]]:
    run = Path("/run")
    return {
        "etcd": flags.etcd_flags(run / "etcd", TRUST, PORTS, durable=True),
        "api server": flags.api_server_flags(run, TRUST, PORTS, with_controller_manager=True),
    }


def test_etcd_asks_every_client_and_peer_for_a_certificate_of_its_own_authority() -> None:
    given = all_flags()["etcd"]
    assert {"--client-cert-auth", "--peer-client-cert-auth"} <= set(given)
    assert {"--trusted-ca-file=/run/pki/etcd-ca.crt", "--peer-trusted-ca-file=/run/pki/etcd-ca.crt"} <= set(given)
    assert not [flag for flag in given if "http://" in flag]


@pytest.mark.parametrize("durable", [True, False])
def test_etcd_skips_the_disk_only_when_the_data_may_be_lost(durable: bool) -> None:
    given = flags.etcd_flags(Path("/d"), TRUST, PORTS, durable=durable)
    assert ("--unsafe-no-fsync" in given) is not durable


@pytest.mark.parametrize("with_manager", [True, False])
def test_pods_do_without_a_service_account_only_where_no_controller_manager_makes_them(with_manager: bool) -> None:
    given = flags.api_server_flags(Path("/run"), TRUST, PORTS, with_controller_manager=with_manager)
    assert ("--disable-admission-plugins=ServiceAccount" in given) is not with_manager


def test_the_api_server_knows_nobody_without_a_certificate_or_a_rule() -> None:
    given = all_flags()["api server"]
    assert "--client-ca-file=/run/pki/ca.crt" in given
    assert "--authorization-mode=Node,RBAC" in given


def test_nothing_listens_beyond_loopback_and_no_two_on_one_port() -> None:
    listening = [
        flag.partition("=")[2]
        for given in all_flags().values()
        for flag in given
        if flag.startswith(("--bind-address", "--listen-"))
    ]
    assert len(listening) == 3
    assert all("127.0.0.1" in value for value in listening)
    assert not [value for value in listening if "0.0.0.0" in value]


def test_every_secret_is_named_by_its_file() -> None:
    for given in all_flags().values():
        assert all("key" not in flag.partition("=")[2] or flag.partition("=")[2].startswith("/") for flag in given)
