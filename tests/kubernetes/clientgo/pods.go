package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// richPodSpec uses one field of every sort that protobuf encodes in its own way: maps, quantities, int-or-string, pointers to
// zero values, nested lists, enums, booleans that are false on purpose.
func richPodSpec() corev1.PodSpec {
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	isMac := corev1.NodeSelectorRequirement{Key: "kubernetes.io/os", Operator: corev1.NodeSelectorOpIn, Values: []string{"darwin"}}
	onMacs := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{isMac}}}}
	virtual := corev1.Toleration{Key: "virtual", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: pointer(int64(30))}
	settings := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, DefaultMode: pointer(int32(0o440))}
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: pointer(int64(0)),
		ActiveDeadlineSeconds:         pointer(int64(3600)),
		AutomountServiceAccountToken:  pointer(false),
		EnableServiceLinks:            pointer(false),
		NodeSelector:                  map[string]string{"kubernetes.io/arch": "arm64"},
		Affinity:                      &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: onMacs}},
		Tolerations:                   []corev1.Toleration{virtual},
		SecurityContext:               &corev1.PodSecurityContext{RunAsUser: pointer(int64(501)), RunAsNonRoot: pointer(true)},
		HostAliases:                   []corev1.HostAlias{{IP: "10.0.0.9", Hostnames: []string{"cache"}}},
		Volumes: []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: pointer(resource.MustParse("1Gi"))}}},
			{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: settings}},
		},
		Containers: []corev1.Container{{
			Name: "main", Image: "example.test/image:1", Command: []string{"run"}, Args: []string{"--all", ""},
			Env: []corev1.EnvVar{
				{Name: "PLAIN", Value: "1"},
				{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"}}},
			},
			Ports:          []corev1.ContainerPort{{Name: "web", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Resources:      corev1.ResourceRequirements{Requests: small, Limits: small},
			VolumeMounts:   []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch", ReadOnly: true}},
			LivenessProbe:  probe(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/live", Port: intstr.FromString("web"), Scheme: corev1.URISchemeHTTP}}),
			ReadinessProbe: probe(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}),
		}},
	}
}

func probe(handler corev1.ProbeHandler) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: handler, PeriodSeconds: 5, TimeoutSeconds: 2, SuccessThreshold: 1, FailureThreshold: 4}
}

func plainPodSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.test/image:1"}}, TerminationGracePeriodSeconds: pointer(int64(30))}
}

func count(list runtime.Object) int { return meta.LenList(list) }
