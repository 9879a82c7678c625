"""Where a Pod may run: tolerations, node and Pod affinity, spreading, gates.

The scheduler of embedded mode reads these; the runners controller writes a few of them. What they mean to a Node is decided
there, not here.
"""

from applecart.api.meta import LabelSelector, Part


class Toleration(Part):
    key: str = ""
    operator: str | None = None  # the API's default is Equal
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorRequirement(Part):
    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Part):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Part):
    """Any of the terms must hold; within a term all requirements must."""

    node_selector_terms: tuple[NodeSelectorTerm, ...]


class PreferredNode(Part):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Part):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredNode, ...] = ()


class PodAffinityTerm(Part):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PreferredPodAffinity(Part):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Part):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredPodAffinity, ...] = ()


class PodAntiAffinity(Part):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredPodAffinity, ...] = ()


class Affinity(Part):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpread(Part):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class SchedulingGate(Part):
    name: str
