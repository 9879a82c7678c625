package main

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// revisions is what an informer believes, or what a list says: names and resourceVersions.
type revisions map[string]string

func (s *scene) listed() revisions {
	list, err := s.typed.CoreV1().ConfigMaps(s.namespace).List(s.ctx, metav1.ListOptions{})
	s.must(err)
	found := revisions{}
	for _, one := range list.Items {
		found[one.Name] = one.ResourceVersion
	}
	return found
}

func believed(informer cache.SharedIndexInformer) revisions {
	found := revisions{}
	for _, one := range informer.GetStore().List() {
		object := one.(metav1.Object)
		found[object.GetName()] = object.GetResourceVersion()
	}
	return found
}

// churn creates, changes and deletes ConfigMaps, and calls between after each round.
func (s *scene) churn(rounds int, between func(int)) {
	objects := s.typed.CoreV1().ConfigMaps(s.namespace)
	for round := range rounds {
		for number := range 5 {
			name := fmt.Sprintf("c%d", (round*3+number)%11)
			_, err := objects.Create(s.ctx, s.configMap(name, map[string]string{"round": fmt.Sprint(round)}), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) && number%2 == 0 {
				err = objects.Delete(s.ctx, name, metav1.DeleteOptions{})
			} else if apierrors.IsAlreadyExists(err) {
				patch := fmt.Appendf(nil, `{"data":{"round":"%d","number":"%d"}}`, round, number)
				_, err = objects.Patch(s.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			}
			s.must(err)
		}
		between(round)
	}
}

func (s *scene) agree(informer cache.SharedIndexInformer) {
	s.until("the informer believes what is listed", func() bool { return maps.Equal(believed(informer), s.listed()) })
}

func (s *scene) start(informer cache.SharedIndexInformer) {
	stop := make(chan struct{})
	s.afterwards(sync.OnceFunc(func() { close(stop) }))
	go informer.Run(stop)
	s.until("the informer is in sync", informer.HasSynced)
}

func typedInformer(s *scene, config *rest.Config) cache.SharedIndexInformer {
	client := kubernetes.NewForConfigOrDie(speakingProtobuf(config))
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(s.namespace)).Core().V1().ConfigMaps().Informer()
}

func dynamicInformer(s *scene, config *rest.Config) cache.SharedIndexInformer {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0, s.namespace, nil)
	return factory.ForResource(configMaps).Informer()
}

func metadataInformer(s *scene, config *rest.Config) cache.SharedIndexInformer {
	factory := metadatainformer.NewFilteredSharedInformerFactory(metadata.NewForConfigOrDie(config), 0, s.namespace, nil)
	return factory.ForResource(configMaps).Informer()
}

func informerChecks() []check {
	follows := func(make func(*scene, *rest.Config) cache.SharedIndexInformer) func(*scene) {
		return func(s *scene) {
			s.createConfigMap("before", nil)
			informer := make(s, s.config)
			s.start(informer)
			s.churn(6, func(int) {})
			s.agree(informer)
		}
	}
	survives := func(make func(*scene, *rest.Config) cache.SharedIndexInformer) func(*scene) {
		return func(s *scene) {
			config, line := through(s)
			informer := make(s, config)
			s.start(informer)
			s.churn(8, func(round int) {
				if round%2 == 0 {
					line.cut()
				}
			})
			s.agree(informer)
		}
	}
	return []check{
		{"a typed informer follows all changes", follows(typedInformer)},
		{"a dynamic informer follows all changes", follows(dynamicInformer)},
		{"a metadata informer follows all changes", follows(metadataInformer)},
		{"a typed informer survives cut connections", survives(typedInformer)},
		{"a dynamic informer survives cut connections", survives(dynamicInformer)},
		{"a metadata informer survives cut connections", survives(metadataInformer)},
		{"an informer tells each change once and in order", func(s *scene) {
			informer := typedInformer(s, s.config)
			var guard sync.Mutex
			var told []string
			note := func(what string, object any) {
				guard.Lock()
				defer guard.Unlock()
				if one, is := object.(*corev1.ConfigMap); is && one.Name == "a" {
					told = append(told, what+one.Data["n"])
				}
			}
			_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(object any) { note("add", object) },
				UpdateFunc: func(_, object any) { note("update", object) },
				DeleteFunc: func(object any) { note("delete", object) },
			})
			s.must(err)
			s.start(informer)
			s.createConfigMap("a", map[string]string{"n": "0"})
			objects := s.typed.CoreV1().ConfigMaps(s.namespace)
			for n := 1; n <= 3; n++ {
				_, err := objects.Patch(s.ctx, "a", types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n), metav1.PatchOptions{})
				s.must(err)
			}
			s.must(objects.Delete(s.ctx, "a", metav1.DeleteOptions{}))
			s.until("the deletion is told", func() bool {
				guard.Lock()
				defer guard.Unlock()
				return len(told) > 0 && told[len(told)-1] == "delete3"
			})
			s.want(fmt.Sprint(told) == "[add0 update1 update2 update3 delete3]", "all changes are told in order: %v", told)
		}},
		{"an informer of one label loses what loses the label", func(s *scene) {
			only := informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "on=yes" })
			informer := informers.NewSharedInformerFactoryWithOptions(s.typed, 0, informers.WithNamespace(s.namespace), only).Core().V1().ConfigMaps().Informer()
			var gone atomic.Int32
			_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { gone.Add(1) }})
			s.must(err)
			s.start(informer)
			s.createConfigMap("a", nil)
			objects := s.typed.CoreV1().ConfigMaps(s.namespace)
			for _, label := range []string{`"yes"`, `"no"`} {
				_, err := objects.Patch(s.ctx, "a", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"on":%s}}}`, label), metav1.PatchOptions{})
				s.must(err)
			}
			s.until("the informer has lost it", func() bool { return gone.Load() == 1 && len(informer.GetStore().List()) == 0 })
		}},
	}
}
