package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func readChecks() []check {
	return []check{
		{"discovery names every group, version and kind", func(s *scene) {
			groups, lists, err := s.typed.Discovery().ServerGroupsAndResources()
			s.must(err)
			found := map[string]bool{}
			for _, list := range lists {
				for _, one := range list.APIResources {
					found[list.GroupVersion+" "+one.Name] = true
				}
			}
			core := []string{"v1 pods", "v1 pods/eviction", "v1 serviceaccounts/token"}
			for _, one := range append(core, "coordination.k8s.io/v1 leases", "apiextensions.k8s.io/v1 customresourcedefinitions") {
				s.want(found[one], "discovery lists %s among %d groups", one, len(groups))
			}
		}},
		{"discovery works without aggregation", func(s *scene) {
			old := s.typed.DiscoveryClient
			legacy := *old
			legacy.UseLegacyDiscovery = true
			_, lists, err := legacy.ServerGroupsAndResources()
			s.must(err)
			_, aggregated, err := old.ServerGroupsAndResources()
			s.must(err)
			s.want(len(lists) == len(aggregated), "%d lists are also %d", len(lists), len(aggregated))
		}},
		{"a RESTMapper maps short names and kinds", func(s *scene) {
			cached := memory.NewMemCacheClient(s.typed.Discovery())
			mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
			resource, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "po"})
			s.must(err)
			s.want(resource.Resource == "pods", "po is pods, not %s", resource.Resource)
			mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}, "v1")
			s.must(err)
			s.want(mapping.Resource.Resource == "leases" && mapping.Scope.Name() == "namespace", "Leases are namespaced")
		}},
		{"the server tells its version and its OpenAPI documents", func(s *scene) {
			version, err := s.typed.Discovery().ServerVersion()
			s.must(err)
			s.want(version.Major == "1" && version.GitVersion != "", "the version is a Kubernetes version: %v", version)
			paths, err := s.typed.Discovery().OpenAPIV3().Paths()
			s.must(err)
			s.want(paths["api/v1"] != nil && paths["apis/coordination.k8s.io/v1"] != nil, "there is a document per group")
		}},
		{"a list comes in pages of one revision", func(s *scene) {
			for number := range 12 {
				s.createConfigMap(fmt.Sprintf("n%02d", number), nil)
			}
			list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return s.typed.CoreV1().ConfigMaps(s.namespace).List(ctx, options)
			}
			first, err := s.typed.CoreV1().ConfigMaps(s.namespace).List(s.ctx, metav1.ListOptions{Limit: 5})
			s.must(err)
			s.want(len(first.Items) == 5 && first.Continue != "" && *first.RemainingItemCount >= 7, "a first page holds 5 and tells what remains")
			s.createConfigMap("n00-later", nil)
			second, err := s.typed.CoreV1().ConfigMaps(s.namespace).List(s.ctx, metav1.ListOptions{Limit: 50, Continue: first.Continue})
			s.must(err)
			s.want(second.ResourceVersion == first.ResourceVersion, "the second page is of the first one's revision")
			pages := pager.New(list)
			pages.PageSize = 4
			names := 0
			s.must(pages.EachListItem(s.ctx, metav1.ListOptions{LabelSelector: "!absent"}, func(runtime.Object) error { names++; return nil }))
			s.want(names >= 13, "the pager sees all 13, not %d", names)
		}},
		{"fields and labels select", func(s *scene) {
			for _, name := range []string{"a", "b"} {
				one := s.configMap(name, nil)
				one.Labels = map[string]string{"name": name}
				_, err := s.typed.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, one, metav1.CreateOptions{})
				s.must(err)
			}
			for _, options := range []metav1.ListOptions{{LabelSelector: "name in (a, c)"}, {LabelSelector: "name,name!=b"}, {FieldSelector: "metadata.name=a"}} {
				got, err := s.typed.CoreV1().ConfigMaps(s.namespace).List(s.ctx, options)
				s.must(err)
				s.want(len(got.Items) == 1 && got.Items[0].Name == "a", "%+v selects a alone", options)
			}
			_, err := s.typed.CoreV1().ConfigMaps(s.namespace).List(s.ctx, metav1.ListOptions{FieldSelector: "data.x=1"})
			s.wantError(apierrors.IsBadRequest, err)
		}},
		{"a watch shows an object come, change and go", func(s *scene) {
			maps := s.typed.CoreV1().ConfigMaps(s.namespace)
			start, err := maps.List(s.ctx, metav1.ListOptions{})
			s.must(err)
			stream, err := maps.Watch(s.ctx, metav1.ListOptions{ResourceVersion: start.ResourceVersion, FieldSelector: "metadata.name=a"})
			s.must(err)
			defer stream.Stop()
			s.createConfigMap("unseen", nil)
			s.createConfigMap("a", nil)
			_, err = maps.Patch(s.ctx, "a", types.MergePatchType, []byte(`{"data":{"x":"1"}}`), metav1.PatchOptions{})
			s.must(err)
			s.must(maps.Delete(s.ctx, "a", metav1.DeleteOptions{}))
			for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
				event := <-stream.ResultChan()
				s.want(event.Type == kind, "the next event is %s, not %s", kind, event.Type)
				s.want(event.Object.(*corev1.ConfigMap).Name == "a", "it is about a")
			}
		}},
		{"UntilWithSync sees what happens while it waits", func(s *scene) {
			made := make(chan error, 1)
			go func() {
				_, err := s.typed.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, s.configMap("a", nil), metav1.CreateOptions{})
				made <- err
			}()
			maps := s.dynamic.Resource(configMaps).Namespace(s.namespace)
			source := &cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
					return maps.List(ctx, options)
				},
				WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
					return maps.Watch(ctx, options)
				},
			}
			_, err := watchtools.UntilWithSync(s.ctx, source, &unstructured.Unstructured{}, nil, func(event watch.Event) (bool, error) {
				return event.Object.(*unstructured.Unstructured).GetName() == "a", nil
			})
			s.must(err)
			s.must(<-made)
		}},
		{"the dynamic client lives with unstructured objects", func(s *scene) {
			maps := s.dynamic.Resource(configMaps).Namespace(s.namespace)
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"x": "1"}}}
			object.SetName("a")
			_, err := maps.Create(s.ctx, object, metav1.CreateOptions{})
			s.must(err)
			got, err := maps.Patch(s.ctx, "a", types.MergePatchType, []byte(`{"data":{"y":"2"}}`), metav1.PatchOptions{})
			s.must(err)
			data, _, _ := unstructured.NestedStringMap(got.Object, "data")
			s.want(data["x"] == "1" && data["y"] == "2", "the patch merges: %v", data)
			object.SetName("b")
			_, err = maps.Apply(s.ctx, "b", object, metav1.ApplyOptions{FieldManager: "one"})
			s.must(err)
			list, err := maps.List(s.ctx, metav1.ListOptions{LabelSelector: "!x"})
			s.must(err)
			s.want(list.GetKind() == "ConfigMapList" && len(list.Items) >= 2, "the list has a kind and both")
			s.must(maps.Delete(s.ctx, "a", metav1.DeleteOptions{}))
		}},
		{"the metadata client reads and patches without the rest", func(s *scene) {
			s.createConfigMap("a", map[string]string{"x": "1"})
			maps := s.metadata.Resource(configMaps).Namespace(s.namespace)
			got, err := maps.Get(s.ctx, "a", metav1.GetOptions{})
			s.must(err)
			s.want(got.Name == "a" && got.UID != "", "its metadata is there")
			got, err = maps.Patch(s.ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"l":"1"}}}`), metav1.PatchOptions{})
			s.must(err)
			s.want(got.Labels["l"] == "1", "the label is there")
			list, err := maps.List(s.ctx, metav1.ListOptions{LabelSelector: "l=1"})
			s.must(err)
			s.want(len(list.Items) == 1, "the list finds it")
			s.must(maps.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "l=1"}))
		}},
	}
}
