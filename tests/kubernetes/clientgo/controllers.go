package main

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// elect runs a candidate until stopped; leads tells how often it came to lead.
func (s *scene) elect(name string) (leads *atomic.Int32, stop context.CancelFunc) {
	identity := resourcelock.ResourceLockConfig{Identity: name}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, s.namespace, "leader", s.typed.CoreV1(), s.typed.CoordinationV1(), identity)
	s.must(err)
	leads = &atomic.Int32{}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 300 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leads.Add(1) }, OnStoppedLeading: func() {}},
	})
	s.must(err)
	ctx, stop := context.WithCancel(s.ctx)
	go elector.Run(ctx)
	return leads, stop
}

var widgets = schema.GroupVersionResource{Version: "v1", Resource: "widgets"}

// makeWidgets installs a kind of its own for this check, sent in protobuf, and returns a client for its objects.
func (s *scene) makeWidgets() dynamic.ResourceInterface {
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: pointer(true)}
	size := apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: pointer(0.0), Default: &apiextensionsv1.JSON{Raw: []byte("3")}}
	spec := apiextensionsv1.JSONSchemaProps{
		Type: "object", Default: &apiextensionsv1.JSON{Raw: []byte("{}")},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": size},
	}
	properties := map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": anything}
	group := s.namespace + ".example.test"
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList", ShortNames: []string{"wd"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size"},
				},
			}},
		},
	}
	definitions := apiextensions.NewForConfigOrDie(speakingProtobuf(s.config)).ApiextensionsV1().CustomResourceDefinitions()
	_, err := definitions.Create(s.ctx, definition, metav1.CreateOptions{})
	s.must(err)
	s.afterwards(func() { _ = definitions.Delete(s.ctx, definition.Name, metav1.DeleteOptions{}) })
	s.until("the kind is established", func() bool {
		got, err := definitions.Get(s.ctx, definition.Name, metav1.GetOptions{})
		s.must(err)
		for _, condition := range got.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
	resource := s.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: widgets.Version, Resource: widgets.Resource}).Namespace(s.namespace)
	s.until("the kind is served", func() bool { _, err := resource.List(s.ctx, metav1.ListOptions{}); return err == nil })
	return resource
}

func (s *scene) widget(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": s.namespace + ".example.test/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func controllerChecks() []check {
	return []check{
		{"one of three candidates leads, and another takes over", func(s *scene) {
			first, stopFirst := s.elect("first")
			s.until("the first leads", func() bool { return first.Load() == 1 })
			second, stopSecond := s.elect("second")
			third, stopThird := s.elect("third")
			s.afterwards(stopSecond)
			s.afterwards(stopThird)
			stopFirst()
			s.until("another leads", func() bool { return second.Load()+third.Load() == 1 })
			lease, err := s.typed.CoordinationV1().Leases(s.namespace).Get(s.ctx, "leader", metav1.GetOptions{})
			s.must(err)
			s.want(*lease.Spec.HolderIdentity != "first" && *lease.Spec.LeaseTransitions >= 1, "the Lease names the new one: %+v", lease.Spec)
		}},
		{"a recorder writes Events and counts repetitions", func(s *scene) {
			broadcaster := record.NewBroadcaster()
			broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: s.typed.CoreV1().Events(s.namespace)})
			s.afterwards(broadcaster.Shutdown)
			recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "checks"})
			about := s.createConfigMap("subject", nil)
			for range 3 {
				recorder.Event(about, corev1.EventTypeNormal, "Again", "the same thing")
			}
			s.until("the Event counts three", func() bool {
				list, err := s.typed.CoreV1().Events(s.namespace).List(s.ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(about.UID) + ",reason=Again"})
				s.must(err)
				return len(list.Items) == 1 && list.Items[0].Count == 3
			})
		}},
		{"a recorder of events.k8s.io writes Events", func(s *scene) {
			broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: s.typed.EventsV1()})
			s.must(broadcaster.StartRecordingToSinkWithContext(s.ctx))
			s.afterwards(broadcaster.Shutdown)
			about := s.createConfigMap("subject", nil)
			broadcaster.NewRecorder(scheme.Scheme, "example.test/checks").Eventf(about, nil, corev1.EventTypeWarning, "Odd", "Looking", "something is %s", "odd")
			s.until("the Event is there", func() bool {
				list, err := s.typed.EventsV1().Events(s.namespace).List(s.ctx, metav1.ListOptions{FieldSelector: "reason=Odd"})
				s.must(err)
				return len(list.Items) == 1 && list.Items[0].Note == "something is odd" && list.Items[0].ReportingController == "example.test/checks"
			})
		}},
		{"a kind made in protobuf serves, defaults and validates", func(s *scene) {
			things := s.makeWidgets()
			made, err := things.Create(s.ctx, s.widget("a", map[string]any{}), metav1.CreateOptions{})
			s.must(err)
			size, _, _ := unstructured.NestedInt64(made.Object, "spec", "size")
			s.want(size == 3 && made.GetGeneration() == 1, "the default is filled in: %v", made.Object)
			_, err = things.Create(s.ctx, s.widget("b", map[string]any{"size": int64(-1)}), metav1.CreateOptions{})
			s.wantError(apierrors.IsInvalid, err)
			_, err = things.Create(s.ctx, s.widget("c", map[string]any{"size": "three"}), metav1.CreateOptions{})
			s.wantError(apierrors.IsInvalid, err)
		}},
		{"the status of a custom object is apart from its spec", func(s *scene) {
			things := s.makeWidgets()
			made, err := things.Create(s.ctx, s.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			s.must(err)
			s.must(unstructured.SetNestedField(made.Object, int64(9), "status", "size"))
			s.must(unstructured.SetNestedField(made.Object, int64(7), "spec", "size"))
			got, err := things.UpdateStatus(s.ctx, made, metav1.UpdateOptions{})
			s.must(err)
			spec, _, _ := unstructured.NestedInt64(got.Object, "spec", "size")
			status, _, _ := unstructured.NestedInt64(got.Object, "status", "size")
			s.want(spec == 1 && status == 9 && got.GetGeneration() == 1, "only the status changed: %v", got.Object)
			_, err = things.Patch(s.ctx, "a", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
			s.wantError(apierrors.IsUnsupportedMediaType, err)
		}},
		{"a custom object is scaled by the scale client", func(s *scene) {
			things := s.makeWidgets()
			_, err := things.Create(s.ctx, s.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			s.must(err)
			mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.typed.Discovery()))
			scales, err := scale.NewForConfig(s.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(s.typed.Discovery()))
			s.must(err)
			resource := schema.GroupResource{Group: s.namespace + ".example.test", Resource: "widgets"}
			var got int32
			s.until("discovery knows the kind", func() bool {
				now, err := scales.Scales(s.namespace).Get(s.ctx, resource, "a", metav1.GetOptions{})
				if err != nil {
					mapper.Reset()
					return false
				}
				now.Spec.Replicas = 5
				now, err = scales.Scales(s.namespace).Update(s.ctx, resource, now, metav1.UpdateOptions{})
				s.must(err)
				got = now.Spec.Replicas
				return true
			})
			s.want(got == 5, "the scale is 5, not %d", got)
		}},
	}
}
