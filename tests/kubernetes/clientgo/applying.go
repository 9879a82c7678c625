package main

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
)

func applyChecks() []check {
	return []check{
		{"Apply creates, changes and removes fields", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			mine := metav1.ApplyOptions{FieldManager: "one"}
			_, err := maps.Apply(s.ctx, applycore.ConfigMap("a", s.namespace).WithData(map[string]string{"x": "1", "y": "1"}), mine)
			s.must(err)
			got, err := maps.Apply(s.ctx, applycore.ConfigMap("a", s.namespace).WithData(map[string]string{"x": "2"}), mine)
			s.must(err)
			s.want(len(got.Data) == 1 && got.Data["x"] == "2", "what is no longer applied is gone: %v", got.Data)
		}},
		{"Apply over another manager conflicts unless forced", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			_, err := maps.Apply(s.ctx, applycore.ConfigMap("a", s.namespace).WithData(map[string]string{"x": "1"}), metav1.ApplyOptions{FieldManager: "one"})
			s.must(err)
			second := applycore.ConfigMap("a", s.namespace).WithData(map[string]string{"x": "2"})
			_, err = maps.Apply(s.ctx, second, metav1.ApplyOptions{FieldManager: "two"})
			s.wantError(apierrors.IsConflict, err)
			s.want(apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict), "the cause is a conflict of managers: %v", err)
			got, err := maps.Apply(s.ctx, second, metav1.ApplyOptions{FieldManager: "two", Force: true})
			s.must(err)
			s.want(got.Data["x"] == "2", "the forced value is stored")
		}},
		{"Apply over an update conflicts with its manager", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			_, err := maps.Create(s.ctx, s.configMap("a", map[string]string{"x": "1"}), metav1.CreateOptions{FieldManager: "editor"})
			s.must(err)
			_, err = maps.Apply(s.ctx, applycore.ConfigMap("a", s.namespace).WithData(map[string]string{"x": "2"}), metav1.ApplyOptions{FieldManager: "one"})
			s.wantError(apierrors.IsConflict, err)
		}},
		{"Apply of the same again changes nothing", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			same := applycore.ConfigMap("a", s.namespace).WithData(map[string]string{"x": "1"})
			first, err := maps.Apply(s.ctx, same, metav1.ApplyOptions{FieldManager: "one"})
			s.must(err)
			second, err := maps.Apply(s.ctx, same, metav1.ApplyOptions{FieldManager: "one"})
			s.must(err)
			s.want(first.ResourceVersion == second.ResourceVersion, "the resourceVersion stays")
		}},
		{"two managers share a Pod, and one that lets go takes only its own", func(s *scene) {
			pods := s.typed.CoreV1().Pods(s.namespace)
			container := func() *applycore.ContainerApplyConfiguration {
				return applycore.Container().WithName("main").WithImage("example.test/image:1")
			}
			spec := applycore.PodSpec().WithContainers(container().WithEnv(applycore.EnvVar().WithName("A").WithValue("1")))
			_, err := pods.Apply(s.ctx, applycore.Pod("p", s.namespace).WithSpec(spec), metav1.ApplyOptions{FieldManager: "one"})
			s.must(err)
			labels := applycore.Pod("p", s.namespace).WithLabels(map[string]string{"team": "mac"})
			got, err := pods.Apply(s.ctx, labels, metav1.ApplyOptions{FieldManager: "two"})
			s.must(err)
			s.want(got.Labels["team"] == "mac" && len(got.Spec.Containers) == 1, "both parts are there")
			got, err = pods.Apply(s.ctx, applycore.Pod("p", s.namespace), metav1.ApplyOptions{FieldManager: "two"})
			s.must(err)
			s.want(got.Labels["team"] == "" && got.Spec.Containers[0].Env[0].Value == "1", "a manager that lets go takes only its own away")
		}},
		{"Extract finds again what was applied", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			got, err := maps.Apply(s.ctx, applycore.ConfigMap("a", s.namespace).WithData(map[string]string{"x": "1"}), metav1.ApplyOptions{FieldManager: "one"})
			s.must(err)
			got, err = maps.Patch(s.ctx, "a", types.MergePatchType, []byte(`{"data":{"other":"2"}}`), metav1.PatchOptions{FieldManager: "two"})
			s.must(err)
			found, err := applycore.ExtractConfigMap(got, "one")
			s.must(err)
			s.want(len(found.Data) == 1 && found.Data["x"] == "1", "only its own fields are extracted: %v", found.Data)
		}},
		{"ApplyStatus owns the status apart", func(s *scene) {
			pods := s.typed.CoreV1().Pods(s.namespace)
			spec := applycore.PodSpec().WithContainers(applycore.Container().WithName("main").WithImage("example.test/image:1"))
			_, err := pods.Apply(s.ctx, applycore.Pod("p", s.namespace).WithSpec(spec), metav1.ApplyOptions{FieldManager: "one"})
			s.must(err)
			status := applycore.PodStatus().WithMessage("working")
			got, err := pods.ApplyStatus(s.ctx, applycore.Pod("p", s.namespace).WithStatus(status), metav1.ApplyOptions{FieldManager: "one"})
			s.must(err)
			entries := map[string]bool{}
			for _, entry := range got.ManagedFields {
				entries[entry.Manager+"/"+entry.Subresource] = true
			}
			s.want(got.Status.Message == "working" && entries["one/"] && entries["one/status"], "one has an entry for each: %v", entries)
		}},
	}
}
