package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

func writeChecks() []check {
	return []check{
		{"names are generated and differ", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			seen := map[string]bool{}
			for range 20 {
				made, err := maps.Create(s.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "some-"}}, metav1.CreateOptions{})
				s.must(err)
				s.want(strings.HasPrefix(made.Name, "some-") && len(made.Name) == len("some-")+5, "%s is some- and five characters", made.Name)
				seen[made.Name] = true
			}
			s.want(len(seen) == 20, "20 objects have 20 names")
		}},
		{"a second object of a name already exists", func(s *scene) {
			s.createConfigMap("a", nil)
			_, err := s.typed.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, s.configMap("a", nil), metav1.CreateOptions{})
			s.wantError(apierrors.IsAlreadyExists, err)
		}},
		{"an invalid object is refused with its fields", func(s *scene) {
			_, err := s.typed.CoreV1().Pods(s.namespace).Create(s.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
			s.wantError(apierrors.IsInvalid, err)
			cause, has := apierrors.StatusCause(err, metav1.CauseTypeFieldValueRequired)
			s.want(has && cause.Field == "spec.containers", "the cause is spec.containers, not %+v", cause)
		}},
		{"an update of an old revision conflicts", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			old := s.createConfigMap("a", map[string]string{"n": "0"})
			newer := old.DeepCopy()
			newer.Data["n"] = "1"
			_, err := maps.Update(s.ctx, newer, metav1.UpdateOptions{})
			s.must(err)
			old.Data["n"] = "2"
			_, err = maps.Update(s.ctx, old, metav1.UpdateOptions{})
			s.wantError(apierrors.IsConflict, err)
		}},
		{"eight writers that retry on conflict lose no increment", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			s.createConfigMap("counter", map[string]string{"n": ""})
			var writers sync.WaitGroup
			var failed atomic.Value
			backoff := retry.DefaultBackoff
			backoff.Steps = 100
			for range 8 {
				writers.Go(func() {
					for range 5 {
						err := retry.RetryOnConflict(backoff, func() error {
							got, err := maps.Get(s.ctx, "counter", metav1.GetOptions{})
							if err != nil {
								return err
							}
							got.Data["n"] += "x"
							_, err = maps.Update(s.ctx, got, metav1.UpdateOptions{})
							return err
						})
						if err != nil {
							failed.Store(err)
						}
					}
				})
			}
			writers.Wait()
			s.want(failed.Load() == nil, "no writer gives up: %v", failed.Load())
			got, err := maps.Get(s.ctx, "counter", metav1.GetOptions{})
			s.must(err)
			s.want(len(got.Data["n"]) == 40, "40 increments are kept, not %d", len(got.Data["n"]))
		}},
		{"a finalizer holds an object until it is removed", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			held := s.configMap("held", nil)
			held.Finalizers = []string{"example.test/hold"}
			_, err := maps.Create(s.ctx, held, metav1.CreateOptions{})
			s.must(err)
			s.must(maps.Delete(s.ctx, "held", metav1.DeleteOptions{}))
			got, err := maps.Get(s.ctx, "held", metav1.GetOptions{})
			s.must(err)
			s.want(got.DeletionTimestamp != nil, "a held object is marked for deletion")
			got.Finalizers = nil
			_, err = maps.Update(s.ctx, got, metav1.UpdateOptions{})
			s.must(err)
			_, err = maps.Get(s.ctx, "held", metav1.GetOptions{})
			s.wantError(apierrors.IsNotFound, err)
		}},
		{"a deleting object takes no new finalizer", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			held := s.configMap("held", nil)
			held.Finalizers = []string{"example.test/hold"}
			_, err := maps.Create(s.ctx, held, metav1.CreateOptions{})
			s.must(err)
			s.must(maps.Delete(s.ctx, "held", metav1.DeleteOptions{}))
			patch := []byte(`{"metadata":{"finalizers":["example.test/more"]}}`)
			_, err = maps.Patch(s.ctx, "held", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			s.wantError(apierrors.IsInvalid, err)
			_, err = maps.Patch(s.ctx, "held", types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`), metav1.PatchOptions{})
			s.must(err)
		}},
		{"a delete with another uid conflicts", func(s *scene) {
			s.createConfigMap("a", nil)
			other := types.UID("00000000-0000-0000-0000-000000000000")
			err := s.typed.CoreV1().ConfigMaps(s.namespace).Delete(s.ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
			s.wantError(apierrors.IsConflict, err)
		}},
		{"a collection is deleted by label", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			for number := range 10 {
				one := s.configMap(fmt.Sprintf("n%d", number), nil)
				one.Labels = map[string]string{"odd": fmt.Sprint(number%2 == 1)}
				_, err := maps.Create(s.ctx, one, metav1.CreateOptions{})
				s.must(err)
			}
			s.must(maps.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "odd=true"}))
			left, err := maps.List(s.ctx, metav1.ListOptions{LabelSelector: "odd"})
			s.must(err)
			s.want(len(left.Items) == 5, "the five even ones are left, not %d", len(left.Items))
		}},
		{"a dry run stores nothing", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			made, err := maps.Create(s.ctx, s.configMap("a", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			s.must(err)
			s.want(made.UID != "", "a dry run shows a uid")
			_, err = maps.Get(s.ctx, "a", metav1.GetOptions{})
			s.wantError(apierrors.IsNotFound, err)
		}},
		{"the status of a Pod changes by itself and by patch", func(s *scene) {
			pods := s.typed.CoreV1().Pods(s.namespace)
			made, err := pods.Create(s.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: plainPodSpec()}, metav1.CreateOptions{})
			s.must(err)
			made.Status.Phase = corev1.PodRunning
			made.Status.PodIP = "10.9.8.7"
			made.Status.PodIPs = []corev1.PodIP{{IP: "10.9.8.7"}}
			made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "Starting"}}
			made, err = pods.UpdateStatus(s.ctx, made, metav1.UpdateOptions{})
			s.must(err)
			patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Initialized","status":"True"}]}}`)
			got, err := pods.Patch(s.ctx, "p", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
			s.must(err)
			s.want(got.Status.Phase == corev1.PodRunning && len(got.Status.Conditions) == 2, "conditions merge by type: %+v", got.Status.Conditions)
		}},
		{"a Pod is bound to a Node and evicted", func(s *scene) {
			pods := s.typed.CoreV1().Pods(s.namespace)
			_, err := pods.Create(s.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: plainPodSpec()}, metav1.CreateOptions{})
			s.must(err)
			target := corev1.ObjectReference{Kind: "Node", Name: "mac"}
			s.must(pods.Bind(s.ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: s.namespace}, Target: target}, metav1.CreateOptions{}))
			bound, err := pods.List(s.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=mac"})
			s.must(err)
			s.want(len(bound.Items) == 1, "the Pod is found by the name of its Node")
			s.must(pods.EvictV1(s.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: s.namespace}}))
			got, err := pods.Get(s.ctx, "p", metav1.GetOptions{})
			s.must(err)
			s.want(got.DeletionTimestamp != nil && *got.DeletionGracePeriodSeconds == 30, "an evicted Pod has its grace period")
			s.must(pods.Delete(s.ctx, "p", metav1.DeleteOptions{GracePeriodSeconds: pointer(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(got.UID))}))
			_, err = pods.Get(s.ctx, "p", metav1.GetOptions{})
			s.wantError(apierrors.IsNotFound, err)
		}},
		{"the status of a Node takes addresses and conditions", func(s *scene) {
			nodes := s.typed.CoreV1().Nodes()
			made, err := nodes.Create(s.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
			s.must(err)
			s.afterwards(func() { _ = nodes.Delete(s.ctx, s.namespace, metav1.DeleteOptions{}) })
			made.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}, {Type: corev1.NodeHostName, Address: "mac"}}
			made.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
			got, err := nodes.UpdateStatus(s.ctx, made, metav1.UpdateOptions{})
			s.must(err)
			s.want(len(got.Status.Addresses) == 2 && got.Status.Conditions[0].Status == corev1.ConditionTrue, "addresses and conditions are kept")
		}},
	}
}
