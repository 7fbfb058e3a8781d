//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func unstructuredList(apiVersion, kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	return list
}

func namesOf(list client.ObjectList) (names []string) {
	_ = meta.EachListItem(list, func(obj runtime.Object) error {
		names = append(names, obj.(client.Object).GetName())
		return nil
	})
	return names
}

// radiodMetricMentioning returns a metric line of any radiod that speaks of a namespace, or "".
func radiodMetricMentioning(t *testing.T, namespace string) string {
	t.Helper()
	for _, line := range radiodMetrics(t) {
		if strings.Contains(line, fmt.Sprintf("namespace=%q", namespace)) {
			return line
		}
	}
	return ""
}

func radiodMetrics(t *testing.T) (lines []string) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	if err := kube.List(t.Context(), &pods, client.InNamespace(platformNamespace), client.MatchingLabels{"app.kubernetes.io/name": "vignette-radiod"}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		body, err := clientset.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").
			Name(pod.Name + ":9600").SubResource("proxy").Suffix("metrics").DoRaw(t.Context())
		if err != nil {
			t.Fatalf("metrics of %s: %v", pod.Name, err)
		}
		lines = append(lines, strings.Split(string(body), "\n")...)
	}
	return lines
}

// execIn runs a command in a container and returns its output.
func execIn(t *testing.T, namespace, pod, container string, command ...string) string {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		t.Fatal(err)
	}
	request := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(restConfig, "POST", request.URL())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &out}); err != nil {
		t.Fatalf("exec %v in %s/%s: %v: %s", command, pod, container, err, out.String())
	}
	return out.String()
}
