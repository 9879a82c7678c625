package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// scene is where one check plays: a namespace of its own and clients on it. Methods panic with a sentence when something
// is not as it must be; runOne turns that into the result.
type scene struct {
	ctx       context.Context
	config    *rest.Config
	namespace string
	typed     *kubernetes.Clientset // sends protobuf, as every controller built on client-go 0.32 or newer does
	dynamic   *dynamic.DynamicClient
	metadata  metadata.Interface
	later     []func()
}

func newScene(ctx context.Context, config *rest.Config, namespace string) *scene {
	return &scene{
		ctx: ctx, config: config, namespace: namespace,
		typed:    kubernetes.NewForConfigOrDie(speakingProtobuf(config)),
		dynamic:  dynamic.NewForConfigOrDie(config),
		metadata: metadata.NewForConfigOrDie(config),
	}
}

func speakingProtobuf(config *rest.Config) *rest.Config {
	changed := rest.CopyConfig(config)
	changed.ContentType = protobuf
	changed.AcceptContentTypes = protobuf + ",application/json"
	return changed
}

func (s *scene) makeNamespace() {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	_, err := s.typed.CoreV1().Namespaces().Create(s.ctx, made, metav1.CreateOptions{})
	s.must(err)
}

// afterwards runs something when the check is over, the last first, whether it passed or not.
func (s *scene) afterwards(undo func()) { s.later = append(s.later, undo) }

func (s *scene) tidy() {
	for ; len(s.later) > 0; s.later = s.later[:len(s.later)-1] {
		s.later[len(s.later)-1]()
	}
}

func (s *scene) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("%s: %v", caller(), err))
	}
}

// want demands that something is true; what says it in words.
func (s *scene) want(true_ bool, what string, arguments ...any) {
	if !true_ {
		panic(fmt.Sprintf("%s: not true that ", caller()) + fmt.Sprintf(what, arguments...))
	}
}

// wantError demands an error that client-go's own predicate recognises.
func (s *scene) wantError(is func(error) bool, err error) {
	if err == nil || !is(err) {
		panic(fmt.Sprintf("%s: another error was due than: %v", caller(), err))
	}
}

// until looks again and again until something is true.
func (s *scene) until(what string, isTrue func() bool) {
	at := caller()
	for !isTrue() {
		select {
		case <-s.ctx.Done():
			panic(fmt.Sprintf("%s: waited in vain until %s", at, what))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func caller() string {
	_, file, line, _ := runtime.Caller(2)
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

func (s *scene) configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func (s *scene) createConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	made, err := s.typed.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, s.configMap(name, data), metav1.CreateOptions{})
	s.must(err)
	return made
}

func pointer[T any](value T) *T { return &value }
