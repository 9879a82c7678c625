"""Which server a context means, and a sentence for each way to get it wrong."""

from pathlib import Path
from typing import Any

import pytest

from applecart.clock import SystemClock
from applecart.errors import BadInput
from applecart.kube.auth.context import Resolved, resolve
from applecart.kube.auth.kubeconfig import load
from tests.kube.kubeconfigs import b64, kubeconfig, write

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def resolved(tmp_path: Path, document: Any, **choice: str) -> Resolved:
    return resolve(load([write(tmp_path / "config", document)]), SystemClock(), {}, **choice)


def test_a_context_gives_its_server_and_namespace(tmp_path: Path) -> None:
    document = kubeconfig(context={"cluster": "farm", "user": "robot", "namespace": "runners"})
    endpoint = resolved(tmp_path, document).endpoint
    assert endpoint.server == "https://10.0.0.1:6443"
    assert endpoint.namespace == "runners"
    assert endpoint.server_from == f'field server of cluster "farm" in {tmp_path}/config'


def test_a_context_without_a_namespace_means_default(tmp_path: Path) -> None:
    assert resolved(tmp_path, kubeconfig()).endpoint.namespace == "default"


def test_a_server_behind_a_path_keeps_the_path_and_loses_the_last_slash(tmp_path: Path) -> None:
    document = kubeconfig(cluster={"server": "https://rancher.test/k8s/clusters/c-1/"})
    assert resolved(tmp_path, document).endpoint.server == "https://rancher.test/k8s/clusters/c-1"


def test_a_named_context_replaces_the_current_one(tmp_path: Path) -> None:
    document = kubeconfig()
    document["contexts"].append({"name": "other", "context": {"cluster": "barn", "user": "robot"}})
    document["clusters"].append({"name": "barn", "cluster": {"server": "https://barn"}})
    assert resolved(tmp_path, document, context="other").endpoint.server == "https://barn"


async def test_a_named_cluster_and_user_replace_those_of_the_context(tmp_path: Path) -> None:
    document = kubeconfig()
    document["clusters"].append({"name": "barn", "cluster": {"server": "https://barn"}})
    document["users"].append({"name": "owner", "user": {"token": "owners-own-token"}})
    found = resolved(tmp_path, document, cluster="barn", user="owner")
    credential = await found.credentials.get()
    assert found.endpoint.server == "https://barn"
    assert credential.token is not None
    assert credential.token.reveal() == "owners-own-token"


async def test_a_context_without_a_user_presents_nothing(tmp_path: Path) -> None:
    credential = await resolved(tmp_path, kubeconfig(context={"cluster": "farm"})).credentials.get()
    assert credential.authorization() is None
    assert credential.certificate is None


def test_a_broken_entry_that_nobody_uses_hurts_nobody(tmp_path: Path) -> None:
    document = kubeconfig()
    document["users"].append({"name": "broken", "user": "not a map"})
    document["clusters"].append({"name": "broken", "cluster": {"server": 7}})
    assert resolved(tmp_path, document).endpoint.server == "https://10.0.0.1:6443"


def test_a_relative_ca_path_starts_at_the_file_that_holds_it(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "ca.pem", PEM)
    config = write(tmp_path / "deep" / "config", kubeconfig({"server": "https://a", "certificate-authority": "ca.pem"}))
    endpoint = resolve(load([config]), SystemClock(), {}).endpoint
    assert endpoint.ca_pem == PEM
    assert endpoint.ca_from.endswith(f"(file {tmp_path}/deep/ca.pem)")


def test_ca_data_wins_over_a_ca_file(tmp_path: Path) -> None:
    cluster = {"server": "https://a", "certificate-authority": "gone", "certificate-authority-data": b64(PEM)}
    assert resolved(tmp_path, kubeconfig(cluster)).endpoint.ca_pem == PEM


def test_base64_that_yaml_folded_over_lines_is_read(tmp_path: Path) -> None:
    data = b64(PEM)
    cluster = {"server": "https://a", "certificate-authority-data": f"{data[:20]}\n  {data[20:]}\n"}
    assert resolved(tmp_path, kubeconfig(cluster)).endpoint.ca_pem == PEM


FARM = {"server": "https://a"}
BAD: list[tuple[dict[str, Any], str]] = [
    (kubeconfig(context={"user": "robot"}), 'context "ci" in {file} names no cluster; set its field cluster'),
    (
        kubeconfig(context={"cluster": "barn"}),
        'field cluster of context "ci" in {file} names "barn", which is not there; choose one of: "farm"',
    ),
    (
        kubeconfig(context={"cluster": "farm", "user": "ghost"}),
        'field user of context "ci" in {file} names "ghost", which is not there; choose one of: "robot"',
    ),
    (
        {**kubeconfig(), "current-context": "gone"},
        'field current-context in {file} names "gone", which is not there; choose one of: "ci"',
    ),
    (
        {**kubeconfig(), "current-context": ""},
        '{file} sets no current-context; set it or pass --context (contexts there: "ci")',
    ),
    (
        kubeconfig(context={"cluster": "farm", "namespace": "No Such"}),
        'field namespace of context "ci" in {file} is no namespace name; use lower-case letters, digits and dashes',
    ),
    (
        kubeconfig(cluster={}),
        'field server of cluster "farm" in {file} is missing; set it to the API server\'s address, like https://10.0.0.1:6443',
    ),
    (kubeconfig(cluster={"server": 7}), 'field server of cluster "farm" in {file} must be text; put it in quotes'),
    (
        kubeconfig(cluster={**FARM, "insecure-skip-tls-verify": "yes"}),
        'field insecure-skip-tls-verify of cluster "farm" in {file} must be true or false',
    ),
    (
        kubeconfig(cluster={**FARM, "certificate-authority-data": "%%%"}),
        'field certificate-authority-data of cluster "farm" in {file} is not base64; '
        "encode it, or name a file in certificate-authority instead",
    ),
    (
        kubeconfig(cluster={**FARM, "certificate-authority-data": b64("no pem")}),
        'field certificate-authority-data of cluster "farm" in {file} is not PEM; '
        "it must hold a text that starts with -----BEGIN",
    ),
    (
        kubeconfig(cluster={**FARM, "certificate-authority": "gone.pem"}),
        'field certificate-authority of cluster "farm" in {file} (file {folder}/gone.pem) cannot be read '
        "(No such file or directory); correct the path or its permissions",
    ),
    (
        kubeconfig(cluster={**FARM, "certificate-authority": "\0"}),
        'field certificate-authority of cluster "farm" in {file} is no path; name a file',
    ),
    (
        kubeconfig(cluster={**FARM, "certificate-authority-data": b64(PEM), "insecure-skip-tls-verify": True}),
        'field insecure-skip-tls-verify of cluster "farm" in {file} is true although '
        'field certificate-authority-data of cluster "farm" in {file} is set; remove one of them',
    ),
    (
        kubeconfig(cluster={**FARM, "tls-server-name": "a b"}),
        'field tls-server-name of cluster "farm" in {file} is no host name; '
        "write the name that the server's certificate holds",
    ),
    (
        kubeconfig(cluster={**FARM, "proxy-url": "socks5://proxy"}),
        'field proxy-url of cluster "farm" in {file} does not start with https:// or http://; write it like http://proxy:3128',
    ),
    (
        kubeconfig(cluster=["a"]),  # type: ignore[arg-type]
        'cluster "farm" in {file} must be a map of named fields; write it as kubectl does',
    ),
]


@pytest.mark.parametrize(("document", "sentence"), BAD, ids=range(len(BAD)))
def test_a_wrong_field_is_one_sentence_with_file_entry_and_field(
    tmp_path: Path, document: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput) as caught:
        resolved(tmp_path, document)
    expected = sentence.replace("{file}", f"{tmp_path}/config").replace("{folder}", str(tmp_path))
    assert str(caught.value) == expected


@pytest.mark.parametrize("kind", ["context", "cluster", "user"])
def test_a_choice_that_is_not_there_lists_what_is(tmp_path: Path, kind: str) -> None:
    with pytest.raises(BadInput, match=rf'there is no {kind} "x" in {tmp_path}/config; choose one of: "(ci|farm|robot)"'):
        resolved(tmp_path, kubeconfig(), **{kind: "x"})


def test_a_name_with_a_line_break_stays_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r'names "a\\nb"'):
        resolved(tmp_path, kubeconfig(context={"cluster": "a\nb"}))
