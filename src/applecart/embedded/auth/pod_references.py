"""Which other objects a Pod makes readable for its node.

The kubelet must fetch what a Pod mounts or reads into its environment: Secrets, ConfigMaps, volume claims, its ServiceAccount.
Nothing else of a namespace may become readable through a Pod, so places are listed one by one. A node could otherwise widen
its own rights by creating a mirror Pod: one with any such reference is refused, and one that exists grants nothing.
"""

from collections.abc import Iterator

from applecart.embedded.auth.untyped import (
    Document,
    mapping,
    mappings,
    metadata,
    name_of,
    namespace_of,
    text,
    texts_by_name,
)

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
SECRETS, CONFIG_MAPS, CLAIMS, ACCOUNTS = "secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts"
PODS = "pods"

Reference = tuple[str, str, str]  # label of the resource, namespace, name

_SECRET_PLACES: dict[str, tuple[str, ...]] = {  # where a volume of each kind names its Secret
    "secret": ("secretName",),
    "azureFile": ("secretName",),
    "cephfs": ("secretRef", "name"),
    "cinder": ("secretRef", "name"),
    "flexVolume": ("secretRef", "name"),
    "rbd": ("secretRef", "name"),
    "scaleIO": ("secretRef", "name"),
    "iscsi": ("secretRef", "name"),
    "storageos": ("secretRef", "name"),
    "csi": ("nodePublishSecretRef", "name"),
}
# fmt: off
_HARMLESS_VOLUMES = frozenset(
    {
        "awsElasticBlockStore", "azureDisk", "cephfs", "cinder", "downwardAPI", "emptyDir", "fc", "flexVolume",
        "flocker", "gcePersistentDisk", "gitRepo", "hostPath", "image", "iscsi", "nfs", "photonPersistentDisk",
        "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
    }
)
# fmt: on
_READING_VOLUMES = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_READING_SOURCES = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def is_mirror(pod: Document) -> bool:
    return MIRROR_ANNOTATION in mapping(metadata(pod).get("annotations"))


def references(pod: Document) -> frozenset[Reference]:
    """Everything the Pod's node may read because of it, the Pod itself first of all."""
    namespace = namespace_of(pod)
    found = {(PODS, namespace, name_of(pod))}
    if is_mirror(pod):
        return frozenset(found)
    spec = mapping(pod.get("spec"))
    names = [
        (ACCOUNTS, text(spec.get("serviceAccountName"))),
        *((SECRETS, name) for name in secret_names(spec)),
        *((CONFIG_MAPS, name) for name in config_map_names(spec)),
        *((CLAIMS, name) for name in _claim_names(pod, spec)),
    ]
    found.update((label, namespace, name) for label, name in names if name)
    return frozenset(found)


def secret_names(spec: Document) -> Iterator[str]:
    for reference in mappings(spec.get("imagePullSecrets")):
        yield text(reference.get("name"))
    yield from _environment_names(spec, "secretRef", "secretKeyRef")
    for volume in mappings(spec.get("volumes")):
        for source, value in volume.items():
            if source == "projected":
                for part in mappings(mapping(value).get("sources")):
                    yield text(mapping(part.get("secret")).get("name"))
            elif source in _SECRET_PLACES:
                for member in _SECRET_PLACES[source]:
                    value = mapping(value).get(member)
                yield text(value)


def config_map_names(spec: Document) -> Iterator[str]:
    yield from _environment_names(spec, "configMapRef", "configMapKeyRef")
    for volume in mappings(spec.get("volumes")):
        if "configMap" in volume:
            yield text(mapping(volume["configMap"]).get("name"))
        elif "projected" in volume:
            for part in mappings(mapping(volume["projected"]).get("sources")):
                yield text(mapping(part.get("configMap")).get("name"))


def read_kind(pod: Document) -> tuple[str, str]:
    """What kind of object the Pod refers to ("" for none), and what cannot be judged about it ("" if all can)."""
    spec = mapping(pod.get("spec"))
    if text(spec.get("serviceAccountName")):
        return ACCOUNTS, ""
    if any(secret_names(spec)):
        return SECRETS, ""
    if any(config_map_names(spec)):
        return CONFIG_MAPS, ""
    if spec.get("resourceClaims"):
        return "resourceclaims", ""
    for volume in mappings(spec.get("volumes")):
        kind, problem = _read_by(volume)
        if kind or problem:
            return kind, problem
    return "", ""


def _environment_names(spec: Document, whole: str, single: str) -> Iterator[str]:
    for member in ("initContainers", "containers", "ephemeralContainers"):
        for container in mappings(spec.get(member)):
            for source in mappings(container.get("envFrom")):
                yield text(mapping(source.get(whole)).get("name"))
            for variable in mappings(container.get("env")):
                yield text(mapping(mapping(variable.get("valueFrom")).get(single)).get("name"))


def _claim_names(pod: Document, spec: Document) -> Iterator[str]:
    for volume in mappings(spec.get("volumes")):
        if "persistentVolumeClaim" in volume:
            yield text(mapping(volume.get("persistentVolumeClaim")).get("claimName"))
        elif "ephemeral" in volume:
            yield f"{name_of(pod)}-{text(volume.get('name'))}"


def _read_by(volume: Document) -> tuple[str, str]:
    sources = {name for name, value in volume.items() if name != "name" and value is not None}
    if sources & _HARMLESS_VOLUMES:
        return "", ""
    for source, kind in _READING_VOLUMES.items():
        if source in sources:
            return kind, ""
    name = text(volume.get("name"))
    if "projected" not in sources:
        return "", f'unknown volume type for volume  "{name}"'
    for part in mappings(mapping(volume.get("projected")).get("sources")):
        for source, kind in _READING_SOURCES.items():
            if part.get(source) is not None:
                return kind, ""
        if part.get("downwardAPI") is None:
            return "", f'unknown source for projected volume "{name}"'
    return "", ""


def labels_of(obj: Document | None) -> dict[str, str]:
    return texts_by_name(metadata(obj).get("labels"))
