"""Scripts about reading and changing single objects: the verbs that a person uses all day."""

from typing import Any

from tests.conformance.clients.manifests import config_map, pod
from tests.conformance.clients.script import manifest, script, step

_STATUS = """-p '{"status":{"phase":"Running","message":"works"}}'"""

_GUARD = '{"metadata":{"finalizers":["provider.dev/guard"],"labels":{"claimed":"yes"}},"data":{"host":"mac-1"}}'
_BINDING = '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"mac-1"}}'


def _of_revision(revision: str, document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "resourceVersion": revision}}


SCRIPTS = [
    script(
        "get shows a Pod in every form",
        step("run p --image=example.test/image:1 --labels=app=p --env=A=1 --restart=Never", "pod/p created"),
        step("get pods", "Pending"),
        step("get pod/p -o wide", "NOMINATED NODE"),
        step("get po p -o name", "pod/p"),
        step("get pod p -o yaml", "image: example.test/image:1"),
        step("get pod p -o json", '"phase": "Pending"'),
        step("get pod p -o jsonpath='{.spec.containers[*].image}'", "example.test/image:1"),
        step("get pods -o custom-columns=NAME:.metadata.name,APP:.metadata.labels.app", "APP"),
        step("get pods -o go-template='{{range .items}}{{.metadata.name}}{{end}}'", "p"),
        step("get pods --show-labels -L app", "app=p"),
        step("get pods --no-headers -l app=p", "p"),
        step("get pods -l 'app notin (p)'", "No resources found in"),
        step("get pods --field-selector=status.phase=Pending,metadata.name!=x", "Pending"),
        step("get pods --field-selector=spec.bogus=1", "BadRequest", code=1),
        step("get pods -A --field-selector=metadata.name=p,metadata.namespace={ns} --sort-by=.metadata.name"),
        step("get pods,configmaps,secrets", "pod/p"),
        step("get pod absent", 'pods "absent" not found', code=1),
        step("get pod absent --ignore-not-found"),
        step("get nonsense", "the server doesn't have a resource type", code=1),
        step("describe pod p", "example.test/image:1"),
        step("get --raw /api/v1/namespaces/{ns}/pods/p/status", '"Pending"', compared=False),
    ),
    script(
        "labels and annotations are added, kept and removed",
        step("create configmap a --from-literal=x=1", "configmap/a created"),
        step("label configmap a one=1 two=2", "configmap/a labeled"),
        step("label configmap a one=2", "already has a value", code=1),
        step("label configmap a one=2 two- --overwrite", "configmap/a"),
        step("label configmap --all three=3"),
        step("label configmap a 'bad key=1'", code=1),
        step("label configmap a one=not/good --overwrite", "invalid label value", code=1),
        step("label configmap a --list", any_order=True),
        step("annotate configmap a note='a note' --overwrite", "annotated"),
        step("annotate configmap a note-", "annotated"),
        step("get configmap a -o yaml", 'one: "2"'),
    ),
    script(
        "patch takes three forms and subresources",
        step("create -f -", "pod/p created", body=pod("p")),
        step("""patch pod p -p '{"spec":{"containers":[{"name":"main","image":"example.test/image:2"}]}}'""", "pod/p patched"),
        step("""patch pod p --type=merge -p '{"metadata":{"labels":{"l":"1"}}}'""", "patched"),
        step("""patch pod p --type=json -p '[{"op":"add","path":"/metadata/labels/m","value":"2"}]'""", "patched"),
        step("""patch pod p --type=json -p '[{"op":"test","path":"/metadata/labels/m","value":"3"}]'""", code=1),
        step("""patch pod p --type=json -p '[{"op":"remove","path":"/spec/absent"}]'""", code=1),
        step(
            """patch pod p -p '{"spec":{"nodeName":"x","containers":[{"name":"main","command":["x"]}]}}'""", "Forbidden", code=1
        ),
        step("""patch pod p -p '{"metadata":{"labels":{"l":"1"}}}'""", "patched (no change)"),
        step("""patch pod p -p '{nonsense'""", code=1),
        step(f"patch pod p --subresource=status {_STATUS}", "patched"),
        step("get pod p --subresource=status -o jsonpath='{.status.message}'", "works"),
        step("""patch pod p --dry-run=server -p '{"metadata":{"labels":{"dry":"yes"}}}' -o yaml""", "dry:"),
        step("get pod p --show-labels", "l=1,m=2"),
    ),
    script(
        "apply on the client's side creates, merges and takes away",
        step("apply -f -", "configmap/a created", body=config_map("a", x="1", y="1")),
        step("apply -f -", "configmap/a unchanged", body=config_map("a", x="1", y="1")),
        step("diff -f -", '+ x: "2"', code=1, body=config_map("a", x="2")),
        step("apply -f - --dry-run=server", "configured (server dry run)", body=config_map("a", x="2")),
        step("apply -f - --dry-run=client -o yaml", "kind: ConfigMap", body=config_map("a", x="2")),
        step("apply -f -", "configmap/a configured", body=config_map("a", x="2")),
        step("diff -f -", body=config_map("a", x="2")),
        step("get configmap a -o yaml", 'x: "2"'),
        step("apply view-last-applied configmap/a", 'x: "2"'),
        step("create configmap plain --from-literal=a=b"),
        step("apply -f -", "Warning: resource configmaps/plain is missing", body=config_map("plain", a="c")),
        step("apply set-last-applied -f -", "configured", body=config_map("a", x="2", z="3")),
        step("apply edit-last-applied configmap/a", "edited", edit='s/z: "3"/z: "4"/'),
        step("apply -f - -o name", "configmap/many-1", stdin=manifest(config_map("many-1"), config_map("many-2"), pod("p"))),
        step("apply -f -", "pod/p configured", body=pod("p", activeDeadlineSeconds=60)),
        step("apply -f -", "no matches for kind", code=1, body={**config_map("a"), "kind": "Nonsense"}),
        step("apply -f -", 'unknown field "dta"', code=1, body={**config_map("a"), "dta": {}}),
        step("apply -f - --validate=warn", 'unknown field "dta"', body={**config_map("a", x="2"), "dta": {}}),
    ),
    script(
        "apply on the server's side owns fields and conflicts",
        step("apply --server-side -f -", "configmap/a serverside-applied", body=config_map("a", x="1", y="1")),
        step("apply --server-side -f -", "serverside-applied", body=config_map("a", x="2")),
        step("get configmap a -o yaml --show-managed-fields", "f:data"),
        step("apply --server-side --field-manager=other -f -", "conflict with", code=1, body=config_map("a", x="3")),
        step("apply --server-side --field-manager=other --force-conflicts -f -", "applied", body=config_map("a", x="3")),
        step("diff --server-side --force-conflicts -f -", 'x: "4"', code=1, body=config_map("a", x="4")),
        step("apply --server-side --dry-run=server -f -", "(server dry run)", body=config_map("b", x="1")),
        step("create configmap made --from-literal=x=1"),
        step("apply --server-side -f -", "kubectl-create", code=1, body=config_map("made", x="2")),
        step("apply --server-side -f -", "serverside-applied", body=pod("p")),
    ),
    script(
        "who moves from one apply to the other keeps what others wrote",
        step("apply -f -", "configmap/a created", body=config_map("a", x="1")),
        step(f"patch configmap a --type=merge --field-manager=provider -p '{_GUARD}'", "configmap/a patched"),
        step("apply --server-side -f -", "serverside-applied", body=config_map("a", x="1")),
        step("get configmap a -o yaml", "provider.dev/guard"),
        step("get configmap a -o yaml --show-managed-fields", 'v:"provider.dev/guard"'),
        step("apply -f -", "pod/p created", body=pod("p")),
        step("create --raw /api/v1/namespaces/{ns}/pods/p/binding -f -", stdin=_BINDING, compared=False),
        step("apply --server-side -f -", "pod/p serverside-applied", body=pod("p")),
        step("get pod p -o yaml", "nodeName: mac-1"),
        step("""patch configmap a --type=merge -p '{"metadata":{"finalizers":null}}'""", "patched"),
    ),
    script(
        "edit and replace write back what they read",
        step("create configmap a --from-literal=x=1"),
        step("edit configmap a", "configmap/a edited", edit='s/x: "1"/x: "2"/'),
        step("edit configmap a", "no changes made", edit="s/absent/absent/"),
        step("edit configmap a -o yaml", 'x: "3"', edit='s/x: "2"/x: "3"/'),
        step("replace -f -", "configmap/a replaced", body=config_map("a", x="4")),
        step("replace -f -", "not found", code=1, body=config_map("absent")),
        step("replace --force -f -", "configmap/a replaced", body=config_map("a", x="5")),
        step("replace -f -", "the object has been modified", code=1, body=_of_revision("1", config_map("a"))),
        step("get configmap a -o jsonpath='{.data.x}'", "5"),
        step("create -f - --edit", "configmap/b created", body=config_map("b", x="1"), edit='s/"1"/"2"/'),
        step("create -f -", "already exists", code=1, body=config_map("b")),
    ),
    script(
        "set changes Pods and bindings",
        step("create -f -", body=pod("p")),
        step("set image pod/p main=example.test/image:3", "pod/p image updated"),
        step("set image pod/p absent=example.test/image:3", "unable to find container", code=1),
        step("set env pod/p --list", "A=1"),
        step("set env pod/p B=2", "Forbidden", code=1),
        step("set env pod/p B=2 --dry-run=client -o yaml", 'value: "2"'),
        step("create rolebinding rb --clusterrole=view --user=jane"),
        step("set subject rolebinding rb --user=joe --group=g --serviceaccount={ns}:robot", "subjects updated"),
        step("get rolebinding rb -o wide", "joe"),
        step("get pod p -o jsonpath='{.spec.containers[0].image}'", "image:3"),
    ),
]
