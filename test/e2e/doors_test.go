//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// forExperiments marks an object that experiments of its namespace may use.
func forExperiments(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelForExperiments: v1alpha1.ForExperiments}}
}

// wantNotAccepted waits until the operator reports what is wrong.
func wantNotAccepted(t *testing.T, e *v1alpha1.Experiment, want string) {
	t.Helper()
	eventually(t, time.Minute, "it to be refused", func() error {
		now := get(t, e)
		for _, c := range now.Status.Conditions {
			if c.Type == v1alpha1.ConditionAccepted && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, want) {
				t.Logf("%s: %s", c.Reason, c.Message)
				return nil
			}
		}
		return errorf("phase %q: %+v", now.Status.Phase, now.Status.Conditions)
	})
}

// filesScript prints what an app finds in its files, and whether it can write to them.
const filesScript = `id -u; cat /etc/own/motd; cat /tmp/x; stat -c %a /etc/own/motd; (echo y > /etc/own/motd) 2>/dev/null && echo WRITTEN; touch /vignette/log/extra.txt && echo may log`

// resolveScript prints the address of each name, and queries the first named nameserver by UDP. A resolver waits 5 s for a nameserver.
const resolveScript = `
import socket, sys, time
server, names = sys.argv[1], sys.argv[2:]
for name in names:
    begun = time.monotonic()
    try:
        said = socket.gethostbyname(name)
    except OSError:
        said = "nothing"
    print(name, said, "at once" if time.monotonic() - begun < 4 else "late")
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
try:
    s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\12kubernetes\7default\3svc\7cluster\5local\0\0\1\0\1", (server, 53))
    print("answer of", len(s.recv(512)), "bytes")
except OSError:
    print("no answer")
`

// TestAnAppFindsItsFilesAndNoSecretThatNobodyLetItUseAndNoNameserver has an app of an experimenter for each.
func TestAnAppFindsItsFilesAndNoSecretThatNobodyLetItUseAndNoNameserver(t *testing.T) {
	t.Parallel()
	tenant := newTenant(t, "vignette-experimenter")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.namespace, Name: "keys"}, StringData: map[string]string{"own": "s3cret"}}
	mustCreate(t, secret)
	server := serviceOf(t, platformNamespace, "vignette-server")
	dns := cmp.Or(serviceOf(t, "kube-system", "kube-dns"), server) // a nameserver of another name is not asked
	e := makeExperiment(tenant.namespace, "reader").Network("wan", "198.18.9.0/24", "baseline").
		Image("own", analysisImage(t), "/bin/sh", "-c", "echo $KEY").
		Image("files", analysisImage(t), "/bin/sh", "-c", filesScript).
		Image("asks", analysisImage(t), "python3", "-c", resolveScript, dns, "hq", "kubernetes.default.svc.cluster.local", "vignette-server."+platformNamespace+".svc").
		Node("hq", "wan").Node("nor", "wan", "own", "files", "asks").Obj()
	e.Spec.Apps[0].Env = []v1alpha1.EnvVar{{Name: "KEY", Secret: &v1alpha1.KeyReference{Name: "keys", Key: "own"}}}
	e.Spec.Apps[1].RunAsUser = new(int64(1234))
	e.Spec.Apps[1].Files = []v1alpha1.AppFile{{Path: "/etc/own/motd", Content: new("hello $(HOME)\n")}, {Path: "/tmp/x", Content: new("in tmp\n")}}
	if err := tenant.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	wantNotAccepted(t, e, "Secret keys does not have the label vignette.dev/for-experiments=true")
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"vignette.dev/for-experiments":"true"}}}`))
	if err := tenant.Patch(t.Context(), secret.DeepCopy(), label); !apierrors.IsForbidden(err) {
		t.Errorf("an experimenter sets the label: %v; want it forbidden", err)
	}
	if err := kube.Patch(t.Context(), secret, label); err != nil {
		t.Fatal(err)
	}
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	want := map[string]string{
		"own":   "s3cret\n",
		"files": "1234\nhello $(HOME)\nin tmp\n444\nmay log\n",
		"asks": "hq 198.18.9.1 at once\nkubernetes.default.svc.cluster.local nothing at once\n" +
			"vignette-server." + platformNamespace + ".svc " + server + " at once\nno answer\n",
	}
	for app, text := range want {
		if out := archivedText(t, done, "logs/nor/"+app+"/stdout-1.log"); out != text {
			t.Errorf("app %s printed %q; want %q", app, out, text)
		}
	}
}

// serviceOf returns the cluster address of a service, empty if there is none.
func serviceOf(t *testing.T, namespace, name string) string {
	t.Helper()
	var service corev1.Service
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &service); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return service.Spec.ClusterIP
}

// TestMetricsOfAllTeamsAskForTheRightToGetThem uses the tokens of nobody, of a tenant and of a permitted reader.
func TestMetricsOfAllTeamsAskForTheRightToGetThem(t *testing.T) {
	t.Parallel()
	tenant := newTenant(t, "vignette-admin")
	for part, port := range metricsPorts(t) {
		path := "/metrics"
		if part == "vignette-prometheus" {
			path = "/api/v1/query?query=up"
		}
		pod := podsOf(t, part)[0]
		for who, c := range map[string]struct {
			authorization string
			want          int
		}{
			"nobody":   {"", http.StatusUnauthorized},
			"a tenant": {"Bearer " + tokenOf(t, tenant.namespace, "default"), http.StatusForbidden},
			"a reader": {"Bearer " + tokenOf(t, platformNamespace, "vignette-metrics-reader"), http.StatusOK},
		} {
			if status, body := getFromPod(t, pod, port, path, c.authorization); status != c.want {
				t.Errorf("%s asks %s: %d, %.200s; want %d", who, part, status, body, c.want)
			}
		}
	}
}

// metricsPorts returns the ports of the installed parts.
func metricsPorts(t *testing.T) map[string]int {
	t.Helper()
	ports := map[string]int{"vignette-server": 9090, "vignette-operator": 8080, "vignette-radiod": 9600, "vignette-prometheus": 9090}
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: platformNamespace, Name: "vignette-prometheus"}, &appsv1.Deployment{}); apierrors.IsNotFound(err) {
		delete(ports, "vignette-prometheus")
	}
	return ports
}

// askScript prints each URL's status, or that it does not answer.
const askScript = `
import sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        said = urllib.request.urlopen(url, timeout=5).status
    except urllib.error.HTTPError as refusal:
        said = refusal.code
    except OSError:
        said = "unreachable"
    print(url, said)
`

// TestAnOpenNodeIsForAnAdministratorToAllowAndReadsNoOthersMetrics has a node without a network query all listening ports.
func TestAnOpenNodeIsForAnAdministratorToAllowAndReadsNoOthersMetrics(t *testing.T) {
	t.Parallel()
	victim := pair(newNamespace(t), "victim").Duration("120s").Obj()
	victim.Spec.Timeline[1].At = "120s"
	mustCreate(t, victim)
	waitFor(t, victim, startTimeout, v1alpha1.PhaseRunning)
	var member corev1.Pod
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: victim.Namespace, Name: "victim-veh"}, &member); err != nil {
		t.Fatal(err)
	}
	want := []string{fmt.Sprintf("http://%s:%s/metrics unreachable", member.Status.PodIP, member.Annotations["prometheus.io/port"])}
	for part, port := range metricsPorts(t) {
		want = append(want, fmt.Sprintf("http://%s:%d/metrics 401", podsOf(t, part)[0].Status.PodIP, port))
		if part == "vignette-prometheus" {
			want = append(want, fmt.Sprintf("http://%s:9091/api/v1/query?query=up unreachable", podsOf(t, part)[0].Status.PodIP))
		}
	}
	command := []string{"python3", "-c", askScript}
	for _, line := range want {
		url, _, _ := strings.Cut(line, " ")
		command = append(command, url)
	}
	tenant := newTenant(t, "vignette-admin")
	e := makeExperiment(tenant.namespace, "spy").Duration("40s").Network("wan", "198.18.9.0/24", "baseline").Image("own", analysisImage(t), command...).Obj()
	e.Spec.Nodes = []v1alpha1.Node{{Name: "eyes", Apps: []string{"own"}}}
	if err := tenant.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	wantNotAccepted(t, e, "a node without a network has an open cluster interface")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant.namespace}}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"vignette.dev/management-network":"Open"}}}`))
	if err := tenant.Patch(t.Context(), namespace.DeepCopy(), label); !apierrors.IsForbidden(err) {
		t.Errorf("a tenant labels its namespace: %v; want it forbidden", err)
	}
	if err := kube.Patch(t.Context(), namespace, label); err != nil {
		t.Fatal(err)
	}
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	got := strings.Split(strings.TrimSpace(archivedText(t, done, "logs/eyes/own/stdout-1.log")), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("the node found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
