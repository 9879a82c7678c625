"""Cluster API's own kinds, as far as we read them, in both versions that are served today.

`v1beta1` and `v1beta2` hold a Cluster, Machine, MachineSet and MachineDeployment each, with the wire shape of that version.
Both shapes answer the same questions through the same properties (`shared.AnyCluster`, `shared.AnyMachine`), so a component
chooses a version once, by what the server serves, and never looks at it again. We write one thing here: that the control
plane of a Cluster is there.
"""

from typing import NamedTuple

from applecart.api.capi import v1beta1, v1beta2


class Kinds(NamedTuple):
    """The kinds of one served version."""

    cluster: type[v1beta1.Cluster] | type[v1beta2.Cluster]
    machine: type[v1beta1.Machine] | type[v1beta2.Machine]
    machine_set: type[v1beta1.MachineSet] | type[v1beta2.MachineSet]
    machine_deployment: type[v1beta1.MachineDeployment] | type[v1beta2.MachineDeployment]


KINDS = {  # the preferred version first
    "v1beta2": Kinds(v1beta2.Cluster, v1beta2.Machine, v1beta2.MachineSet, v1beta2.MachineDeployment),
    "v1beta1": Kinds(v1beta1.Cluster, v1beta1.Machine, v1beta1.MachineSet, v1beta1.MachineDeployment),
}
