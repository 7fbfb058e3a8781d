//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
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

// radiodMetricMentioning returns a metric line of any radiod that names a namespace, or "".
func radiodMetricMentioning(t *testing.T, namespace string) (line string, err error) {
	t.Helper()
	for _, pod := range podsOf(t, "vignette-radiod") {
		status, body := getFromPod(t, pod, 9600, "/metrics", "Bearer "+tokenOf(t, platformNamespace, "vignette-metrics-reader"))
		if status != http.StatusOK {
			return "", fmt.Errorf("metrics of %s: %d, %s", pod.Name, status, body)
		}
		for line := range strings.Lines(body) {
			if strings.Contains(line, fmt.Sprintf("namespace=%q", namespace)) {
				return line, nil
			}
		}
	}
	return "", nil
}

// podsOf returns the pods of a part of the platform.
func podsOf(t *testing.T, part string) (pods []*corev1.Pod) {
	t.Helper()
	var list corev1.PodList
	if err := kube.List(t.Context(), &list, client.InNamespace(platformNamespace), client.MatchingLabels{"app.kubernetes.io/name": part}); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, &list.Items[i])
		}
	}
	if len(pods) == 0 {
		t.Fatalf("%s has no pods", part)
	}
	return pods
}

// tokens are shared by tests, as by a client: each new one costs its reader a review.
var tokens = struct {
	sync.Mutex
	of map[string]string
}{of: map[string]string{}}

// tokenOf returns a service account's token.
func tokenOf(t *testing.T, namespace, account string) string {
	t.Helper()
	tokens.Lock()
	defer tokens.Unlock()
	if known := tokens.of[namespace+"/"+account]; known != "" {
		return known
	}
	clientset := clientsetOf(t)
	token, err := clientset.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tokens.of[namespace+"/"+account] = token.Status.Token
	return token.Status.Token
}

// getFromPod uses a forwarded port, as the API server's proxy does not pass tokens on. Without an answer the status is 0, and the
// body the reason.
func getFromPod(t *testing.T, pod *corev1.Pod, port int, path, authorization string) (status int, body string) {
	t.Helper()
	clientset := clientsetOf(t)
	request := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward")
	transport, upgrader, err := spdy.RoundTripperFor(restConfig)
	if err != nil {
		t.Fatal(err)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, request.URL())
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprint("0:", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return 0, fmt.Sprintf("forward port %d of %s: %v", port, pod.Name, err)
	}
	defer close(stop)
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", ports[0].Local, path), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	get.Header.Set("Authorization", authorization)
	answer, err := http.DefaultClient.Do(get)
	if err != nil { // nothing listens there
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

func clientsetOf(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		t.Fatal(err)
	}
	return clientset
}

// execIn runs a command in a container and returns its output.
func execIn(t *testing.T, namespace, pod, container string, command ...string) string {
	t.Helper()
	return feedTo(t, nil, namespace, pod, container, command...)
}

// feedTo runs a command in a container with an optional input, and returns its output.
func feedTo(t *testing.T, input io.Reader, namespace, pod, container string, command ...string) string {
	t.Helper()
	clientset := clientsetOf(t)
	request := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdin: input != nil, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(restConfig, "POST", request.URL())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: input, Stdout: &out, Stderr: &out}); err != nil {
		t.Fatalf("exec %v in %s/%s: %v: %s", command, pod, container, err, out.String())
	}
	return out.String()
}
