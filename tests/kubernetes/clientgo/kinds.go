package main

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// objects is what every typed client can do with its kind.
type objects[T any, L runtime.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// live takes one object through its life and demands that nothing that was sent is lost on the way.
func live[T metav1.Object, L runtime.Object](s *scene, client objects[T, L], sent T) {
	sent.SetLabels(map[string]string{"check": s.namespace})
	made, err := client.Create(s.ctx, sent, metav1.CreateOptions{})
	s.must(err)
	// Zero times and numbers are values to DeepDerivative, not absences.
	sent.SetCreationTimestamp(made.GetCreationTimestamp())
	sent.SetGeneration(made.GetGeneration())
	s.want(equality.Semantic.DeepDerivative(sent, made), "what was created is what was sent")
	s.want(made.GetUID() != "" && made.GetResourceVersion() != "", "a created object has a uid and a resourceVersion")

	made.SetAnnotations(map[string]string{"round": "two"})
	changed, err := client.Update(s.ctx, made, metav1.UpdateOptions{})
	s.must(err)
	s.want(changed.GetResourceVersion() != made.GetResourceVersion(), "an update gives a new resourceVersion")

	patch := []byte(`{"metadata":{"annotations":{"round":"three","more":"yes"}}}`)
	_, err = client.Patch(s.ctx, made.GetName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	s.must(err)
	got, err := client.Get(s.ctx, made.GetName(), metav1.GetOptions{})
	s.must(err)
	s.want(got.GetAnnotations()["round"] == "three" && got.GetAnnotations()["more"] == "yes", "a patch merges annotations")
	s.want(equality.Semantic.DeepDerivative(sent, got), "what is read is what was sent")

	listed, err := client.List(s.ctx, metav1.ListOptions{LabelSelector: "check=" + s.namespace})
	s.must(err)
	s.want(count(listed) == 1, "a list by label finds the one object, not %d", count(listed))

	s.must(client.Delete(s.ctx, made.GetName(), *metav1.NewDeleteOptions(0)))
	_, err = client.Get(s.ctx, made.GetName(), metav1.GetOptions{})
	s.wantError(apierrors.IsNotFound, err)
}

func kindChecks() []check {
	core := func(s *scene) kubernetes.Interface { return s.typed }
	meta := func(s *scene) metav1.ObjectMeta { return metav1.ObjectMeta{Name: s.namespace + "-thing"} }
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}
	return []check{
		{"a ConfigMap lives in protobuf", func(s *scene) {
			binary := map[string][]byte{"b": {0, 1, 255}}
			live(s, core(s).CoreV1().ConfigMaps(s.namespace), &corev1.ConfigMap{ObjectMeta: meta(s), Data: map[string]string{"a": "1"}, BinaryData: binary})
		}},
		{"a Secret lives in protobuf", func(s *scene) {
			data := map[string][]byte{"password": []byte("not one")}
			live(s, core(s).CoreV1().Secrets(s.namespace), &corev1.Secret{ObjectMeta: meta(s), Data: data, Type: corev1.SecretTypeOpaque})
		}},
		{"a ServiceAccount lives in protobuf", func(s *scene) {
			live(s, core(s).CoreV1().ServiceAccounts(s.namespace), &corev1.ServiceAccount{ObjectMeta: meta(s), AutomountServiceAccountToken: pointer(false)})
		}},
		{"a Service lives in protobuf", func(s *scene) {
			port := corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromString("web"), Protocol: corev1.ProtocolTCP}
			spec := corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{port}, Selector: map[string]string{"a": "b"}}
			live(s, core(s).CoreV1().Services(s.namespace), &corev1.Service{ObjectMeta: meta(s), Spec: spec})
		}},
		{"a Pod with every sort of field lives in protobuf", func(s *scene) {
			live(s, core(s).CoreV1().Pods(s.namespace), &corev1.Pod{ObjectMeta: meta(s), Spec: richPodSpec()})
		}},
		{"a Node lives in protobuf", func(s *scene) {
			spec := corev1.NodeSpec{PodCIDR: "10.1.0.0/24", ProviderID: "test://" + s.namespace, Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}}
			live(s, core(s).CoreV1().Nodes(), &corev1.Node{ObjectMeta: meta(s), Spec: spec})
		}},
		{"a Namespace is created and read in protobuf", func(s *scene) {
			got, err := core(s).CoreV1().Namespaces().Get(s.ctx, s.namespace, metav1.GetOptions{})
			s.must(err)
			s.want(got.Status.Phase == corev1.NamespaceActive, "a new namespace is Active")
			s.want(got.Labels["kubernetes.io/metadata.name"] == s.namespace, "a namespace carries its name as a label")
			s.want(len(got.Spec.Finalizers) == 1 && got.Spec.Finalizers[0] == corev1.FinalizerKubernetes, "a namespace is guarded by kubernetes")
		}},
		{"a Lease lives in protobuf and keeps microseconds", func(s *scene) {
			now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
			spec := coordinationv1.LeaseSpec{HolderIdentity: pointer("me"), LeaseDurationSeconds: pointer(int32(40)), RenewTime: &now}
			live(s, core(s).CoordinationV1().Leases(s.namespace), &coordinationv1.Lease{ObjectMeta: meta(s), Spec: spec})
		}},
		{"a Role and its binding live in protobuf", func(s *scene) {
			live(s, core(s).RbacV1().Roles(s.namespace), &rbacv1.Role{ObjectMeta: meta(s), Rules: rules})
			binding := &rbacv1.RoleBinding{ObjectMeta: meta(s), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}
			binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: s.namespace}}
			live(s, core(s).RbacV1().RoleBindings(s.namespace), binding)
		}},
		{"a ClusterRole and its binding live in protobuf", func(s *scene) {
			live(s, core(s).RbacV1().ClusterRoles(), &rbacv1.ClusterRole{ObjectMeta: meta(s), Rules: rules})
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta(s), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}
			binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: s.namespace}}
			live(s, core(s).RbacV1().ClusterRoleBindings(), binding)
		}},
		{"a PodDisruptionBudget lives in protobuf", func(s *scene) {
			spec := policyv1.PodDisruptionBudgetSpec{MinAvailable: pointer(intstr.FromString("50%")), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
			live(s, core(s).PolicyV1().PodDisruptionBudgets(s.namespace), &policyv1.PodDisruptionBudget{ObjectMeta: meta(s), Spec: spec})
		}},
		{"a RuntimeClass lives in protobuf", func(s *scene) {
			live(s, core(s).NodeV1().RuntimeClasses(), &nodev1.RuntimeClass{ObjectMeta: meta(s), Handler: "tart"})
		}},
		{"a PriorityClass lives in protobuf", func(s *scene) {
			live(s, core(s).SchedulingV1().PriorityClasses(), &schedulingv1.PriorityClass{ObjectMeta: meta(s), Value: 1000, Description: "for a check"})
		}},
		{"an Event of the core group lives in protobuf", func(s *scene) {
			about := corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: "p", APIVersion: "v1"}
			now := metav1.Now().Rfc3339Copy()
			event := &corev1.Event{ObjectMeta: meta(s), InvolvedObject: about, Reason: "Tried", Message: "m", Type: "Normal", Count: 1}
			event.FirstTimestamp, event.LastTimestamp = now, now
			live(s, core(s).CoreV1().Events(s.namespace), event)
		}},
		{"an Event of events.k8s.io is the same object in the core group", func(s *scene) {
			about := corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: "p", APIVersion: "v1"}
			event := &eventsv1.Event{ObjectMeta: meta(s), Regarding: about, Reason: "Tried", Note: "note", Type: "Normal", EventTime: metav1.NowMicro()}
			event.ReportingController, event.ReportingInstance, event.Action = "a.b/c", "i", "Do"
			_, err := core(s).EventsV1().Events(s.namespace).Create(s.ctx, event, metav1.CreateOptions{})
			s.must(err)
			got, err := core(s).CoreV1().Events(s.namespace).Get(s.ctx, event.Name, metav1.GetOptions{})
			s.must(err)
			s.want(got.Message == "note" && got.InvolvedObject.Name == "p" && got.ReportingController == "a.b/c", "the core view shows note, subject and reporter")
		}},
	}
}
