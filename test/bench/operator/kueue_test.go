//go:build kueue

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	kueueModule = "sigs.k8s.io/kueue"
	kueueHome   = "kueue-system"
	// podsReadyWithin is how long Kueue lets an admitted Workload become ready.
	podsReadyWithin = 3 * time.Minute
	nodesOfEach     = 5
	podsOfEach      = nodesOfEach + 1 // one is the workflow's
	// patience is the timeout on a busy machine.
	patience = 8 * time.Minute
)

// built is the folder of the programs that `make test-kueue` has built.
var built = os.Getenv("VIGNETTE_PROGRAMS")

// kueueBed is a bed with Kueue's own manager beside the operator.
type kueueBed struct {
	*bed
	ctx    context.Context
	t      *testing.T
	module string
	config string
	made   int
}

func newKueueBed(t *testing.T) *kueueBed {
	t.Helper()
	for _, program := range []string{"operator", "kwok", "kueue"} {
		if _, err := os.Stat(filepath.Join(built, program)); err != nil {
			t.Fatalf("VIGNETTE_PROGRAMS: %v: make test-kueue builds it", err)
		}
	}
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-C", "../../../hack/kueue", "-m", "-f", "{{.Dir}}", kueueModule).Output()
	if err != nil {
		t.Fatalf("find %s: %v", kueueModule, err)
	}
	b, err := newBed(t.Context(), options{experiments: 20, nodes: nodesOfEach, teams: 1, programs: built, keep: os.Getenv("VIGNETTE_KUEUE_LOGS")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	if err := admissionv1.AddToScheme(b.api.Scheme()); err != nil { // Kueue's webhooks, which the platform has none of
		t.Fatal(err)
	}
	return &kueueBed{bed: b, ctx: t.Context(), t: t, module: strings.TrimSpace(string(folder))}
}

func (k *kueueBed) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// eventually waits until a condition holds. On failure it reports the last state.
func (k *kueueBed) eventually(what string, holds func() (bool, string)) time.Duration {
	k.t.Helper()
	began, instead := time.Now(), ""
	for end := began.Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		var yes bool
		if yes, instead = holds(); yes {
			return time.Since(began)
		}
	}
	k.t.Fatalf("not within %s: %s; instead: %s", patience, what, instead)
	return 0
}

// install installs Kueue by its own manifests, and starts its manager. It replaces the kubelet and a Service for a pod: the manager's
// certificates go into its folder, and the Service leads to this machine.
func (k *kueueBed) install() {
	ports, err := freePorts(2)
	k.must(err)
	_, port, err := net.SplitHostPort(ports[0])
	k.must(err)
	number, err := strconv.Atoi(port)
	k.must(err)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kueue-webhook-service", Namespace: kueueHome},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kueue-webhook-server-cert", Namespace: kueueHome}}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kueueHome}}, service, secret} {
		k.must(k.api.Create(k.ctx, object))
	}
	k.installDefinitions(int32(number))
	k.installWebhooks(int32(number))
	certificates := k.path("kueue-certificates")
	k.must(os.Mkdir(certificates, 0o700))
	k.config = k.path("kueue.yaml")
	k.must(os.WriteFile(k.config, fmt.Appendf(nil, `
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: %s
health: {healthProbeBindAddress: "%s"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %d, certDir: %s}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true, webhookServiceName: %s, webhookSecretName: %s}
waitForPodsReady: {timeout: %s, blockAdmission: false}
featureGates: {VisibilityOnDemand: false}
integrations: {frameworks: [batch/job]}
`, kueueHome, ports[1], number, certificates, service.Name, secret.Name, podsReadyWithin), 0o600))
	user, err := k.environment.AddUser(envtest.User{Name: "kueue", Groups: []string{"system:masters"}}, nil)
	k.must(err)
	text, err := user.KubeConfig()
	k.must(err)
	k.must(os.WriteFile(k.path("kueue.kubeconfig"), text, 0o600))
	target, err := filepath.Abs(filepath.Join(built, "kueue"))
	k.must(err)
	k.must(os.Symlink(target, k.path("kueue")))
	k.start()
	go k.mount(k.ctx, client.ObjectKeyFromObject(secret), certificates)
}

// start starts Kueue's manager.
func (k *kueueBed) start() {
	_, err := k.run("kueue", "--kubeconfig", k.path("kueue.kubeconfig"), "--config", k.config, "--zap-log-level=2")
	k.must(err)
}

// stopManager stops Kueue's manager, the last started process.
func (k *kueueBed) stopManager() {
	last := len(k.processes) - 1
	k.must(k.processes[last].Process.Signal(syscall.SIGTERM))
	_ = k.processes[last].Wait() // by a signal
	k.processes = k.processes[:last]
}

// mount mounts a Secret, as a kubelet does.
func (k *kueueBed) mount(ctx context.Context, key client.ObjectKey, folder string) {
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		var secret corev1.Secret
		if err := k.api.Get(ctx, key, &secret); err != nil {
			continue
		}
		for name, content := range secret.Data {
			path := filepath.Join(folder, name)
			if known, err := os.ReadFile(path); err == nil && slices.Equal(known, content) {
				continue
			}
			if os.WriteFile(path+".new", content, 0o600) == nil {
				_ = os.Rename(path+".new", path) // or at the next look
			}
		}
	}
}

func (k *kueueBed) installDefinitions(port int32) {
	folder := filepath.Join(k.module, "config/components/crd/bases")
	definitions, err := envtest.InstallCRDs(k.bed.config, envtest.CRDInstallOptions{Paths: []string{folder}})
	k.must(err)
	converted := []string{"localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters"} // crd/kustomization.yaml
	for _, definition := range definitions {
		if !slices.Contains(converted, definition.Spec.Names.Plural) {
			continue
		}
		found := &apiextensionsv1.CustomResourceDefinition{}
		k.must(k.api.Get(k.ctx, client.ObjectKeyFromObject(definition), found))
		found.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: kueueHome, Name: "kueue-webhook-service", Path: ptr.To("/convert"), Port: ptr.To(port),
			}},
		}}
		k.must(k.api.Update(k.ctx, found))
	}
}

// installWebhooks installs the webhooks on Kueue's own kinds.
func (k *kueueBed) installWebhooks(port int32) {
	file, err := os.Open(filepath.Join(k.module, "config/components/webhook/manifests.yaml"))
	k.must(err)
	defer file.Close()
	ours := func(name string, reference *admissionv1.ServiceReference) bool {
		reference.Name, reference.Namespace, reference.Port = "kueue-"+reference.Name, kueueHome, ptr.To(port)
		return strings.Contains(*reference.Path, "kueue-x-k8s-io")
	}
	var mutating admissionv1.MutatingWebhookConfiguration
	var validating admissionv1.ValidatingWebhookConfiguration
	documents := yaml.NewYAMLOrJSONDecoder(file, 4096)
	k.must(documents.Decode(&mutating))
	k.must(documents.Decode(&validating))
	mutating.Webhooks = slices.DeleteFunc(mutating.Webhooks, func(w admissionv1.MutatingWebhook) bool { return !ours(w.Name, w.ClientConfig.Service) })
	validating.Webhooks = slices.DeleteFunc(validating.Webhooks, func(w admissionv1.ValidatingWebhook) bool { return !ours(w.Name, w.ClientConfig.Service) })
	mutating.Name, validating.Name = "kueue-"+mutating.Name, "kueue-"+validating.Name
	k.must(k.api.Create(k.ctx, &mutating))
	k.must(k.api.Create(k.ctx, &validating))
}

// create creates one of Kueue's objects, once its webhooks answer.
func (k *kueueBed) create(text string) {
	k.t.Helper()
	object := &unstructured.Unstructured{}
	k.must(yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096).Decode(&object.Object))
	k.eventually("create "+object.GetKind(), func() (bool, string) {
		err := k.api.Create(k.ctx, object.DeepCopy())
		return err == nil || apierrors.IsAlreadyExists(err), fmt.Sprint(err)
	})
}

// queue makes a ClusterQueue for so many pods, which preempts those with a lower priority.
func (k *kueueBed) queue(name string, pods int, more string) {
	k.t.Helper()
	k.create(fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %s}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
%s
  resourceGroups:
  - coveredResources: [cpu, memory, pods]
    flavors: [{name: hosts, resources: [{name: cpu, nominalQuota: 100}, {name: memory, nominalQuota: 100Gi}, {name: pods, nominalQuota: %d}]}]
`, name, more, pods))
	k.create(fmt.Sprintf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: %s, namespace: %s}, spec: {clusterQueue: %s}}", name, team(0), name))
}

// submit submits an experiment of five pods.
func (k *kueueBed) submit(queue string, priority int32) client.ObjectKey {
	k.t.Helper()
	e := liveCluster(team(0), k.made, nodesOfEach)
	k.made++
	e.Spec.QueueName, e.Spec.Priority = queue, priority
	k.must(k.api.Create(k.ctx, e))
	return client.ObjectKeyFromObject(e)
}

func (k *kueueBed) experiment(key client.ObjectKey) *v1alpha1.Experiment {
	k.t.Helper()
	e := &v1alpha1.Experiment{}
	k.must(k.api.Get(k.ctx, key, e))
	return e
}

// told returns an experiment's condition: status, reason and message.
func told(e *v1alpha1.Experiment, condition string) string {
	c := meta.FindStatusCondition(e.Status.Conditions, condition)
	if c == nil {
		return string(e.Status.Phase) + ", no condition " + condition
	}
	return fmt.Sprintf("%s, %s %s %s: %s", e.Status.Phase, condition, c.Status, c.Reason, c.Message)
}

// until waits until an experiment's condition contains all of these words.
func (k *kueueBed) until(key client.ObjectKey, condition string, words ...string) time.Duration {
	k.t.Helper()
	return k.eventually(fmt.Sprintf("%s %s says %q", key.Name, condition, words), func() (bool, string) {
		is := told(k.experiment(key), condition)
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(is, word) }), is
	})
}

// untilRuns waits until everything planned has started.
func (k *kueueBed) untilRuns(key client.ObjectKey) time.Duration {
	k.t.Helper()
	return k.eventually(key.Name+" runs", func() (bool, string) {
		e := k.experiment(key)
		return running(seen{phase: e.Status.Phase, step: e.Status.Step}), told(e, v1alpha1.ConditionAdmitted) + " " + e.Status.Message
	})
}

// untilGone waits until an experiment's pods and Workload are deleted.
func (k *kueueBed) untilGone(key client.ObjectKey) time.Duration {
	k.t.Helper()
	return k.eventually("pods and Workload of "+key.Name+" are gone", func() (bool, string) {
		var pods corev1.PodList
		k.must(k.api.List(k.ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: key.Name}))
		workload := k.find(key)
		return len(pods.Items) == 0 && workload == nil, fmt.Sprintf("%d pods, Workload %v", len(pods.Items), workload != nil)
	})
}

// find returns an experiment's Workload; nil for none.
func (k *kueueBed) find(key client.ObjectKey) *unstructured.Unstructured {
	k.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	list.SetKind("WorkloadList")
	k.must(k.api.List(k.ctx, list, client.InNamespace(key.Namespace)))
	for i := range list.Items {
		if owners := list.Items[i].GetOwnerReferences(); len(owners) > 0 && owners[0].Name == key.Name {
			return &list.Items[i]
		}
	}
	return nil
}

// conditionOf returns a Workload's condition: its status and reason.
func conditionOf(workload *unstructured.Unstructured, kind string) string {
	if workload == nil {
		return "no Workload"
	}
	conditions, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions")
	for _, entry := range conditions {
		if c := entry.(map[string]any); c["type"] == kind {
			return fmt.Sprint(c["status"], " ", c["reason"])
		}
	}
	return "no condition"
}

func (k *kueueBed) patch(object client.Object, text string, status bool) {
	k.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(text))
	if status {
		k.must(k.api.Status().Patch(k.ctx, object, patch))
		return
	}
	k.must(k.api.Patch(k.ctx, object, patch))
}

func (k *kueueBed) object(kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// end ends an experiment successfully.
func (k *kueueBed) end(key client.ObjectKey) {
	k.t.Helper()
	k.patch(k.experiment(key), `{"spec":{"stop":true}}`, false)
	k.eventually(key.Name+" succeeds", func() (bool, string) {
		e := k.experiment(key)
		return e.Status.Phase == v1alpha1.PhaseSucceeded, told(e, "Failure")
	})
}

// step is a step of the sequence. After a failure the following steps make no sense.
func (k *kueueBed) step(name string, do func(t *testing.T)) {
	whole := k.t
	passed := whole.Run(name, func(t *testing.T) {
		k.t = t
		do(t)
	})
	if k.t = whole; !passed {
		whole.FailNow()
	}
}

func TestKueueDecidesAndExperimentsFollow(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	k := newKueueBed(t)
	early := k.submit("team", 0)
	k.step("without Kueue it is not accepted, and goes on once Kueue is there", func(t *testing.T) {
		k.until(early, v1alpha1.ConditionAccepted, "KueueNotInstalled")
		k.install()
		k.until(early, v1alpha1.ConditionAdmitted, "WaitingForKueue", "LocalQueue team doesn't exist")
		k.create("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: hosts}}")
		k.queue("team", 2*podsOfEach, "")
		k.untilRuns(early)
	})
	second := k.submit("team", 0)
	third := k.submit("team", 0)
	k.step("two fit, the third waits with Kueue's words, and starts when one has ended", func(t *testing.T) {
		k.untilRuns(second)
		k.until(third, v1alpha1.ConditionAdmitted, "Queued", "WaitingForKueue", "insufficient unused quota for pods")
		beside := k.submit("", 0) // vignette's own queue decides on it
		k.untilRuns(beside)
		k.end(early)
		k.untilGone(early)
		t.Logf("starts %s after the Workload of the one before is gone", k.untilRuns(third).Round(time.Second))
	})
	k.step("Kueue hears that all nodes are ready, and evicts nobody who is", func(t *testing.T) {
		k.eventually("PodsReady", func() (bool, string) {
			is := conditionOf(k.find(third), "PodsReady")
			return is == "True Started", is
		})
		time.Sleep(podsReadyWithin)
		k.untilRuns(second)
		k.untilRuns(third)
	})
	urgent := client.ObjectKey{}
	k.step("a preempted one fails as Evicted, its pods go, and the other takes its quota", func(t *testing.T) {
		began := time.Now()
		urgent = k.submit("team", 5)
		k.until(third, "Failure", "Failed", "Evicted", "Preempted to accommodate a workload")
		failed := time.Since(began)
		k.untilGone(third)
		gone := time.Since(began)
		k.untilRuns(urgent)
		t.Logf("failed %s, gone %s, the other runs %s after that was submitted", failed.Round(time.Second), gone.Round(time.Second), time.Since(began).Round(time.Second))
		k.untilRuns(second)
	})
	k.step("what runs goes on while Kueue is away, and what ends gives its quota back", func(t *testing.T) {
		k.stopManager()
		time.Sleep(10 * time.Second)
		k.untilRuns(second)
		k.end(second)
		k.start()
		again := k.submit("team", 0)
		k.untilRuns(again)
		k.end(again)
	})
	k.step("a LocalQueue that is drained evicts, with its reason", func(t *testing.T) {
		k.patch(k.object("LocalQueue", team(0), "team"), `{"spec":{"stopPolicy":"HoldAndDrain"}}`, false)
		k.until(urgent, "Failure", "Failed", "Evicted", "LocalQueue is stopped")
		k.untilGone(urgent)
		waiting := k.submit("team", 0)
		k.until(waiting, v1alpha1.ConditionAdmitted, "Queued", "LocalQueue team is inactive")
		k.patch(k.object("LocalQueue", team(0), "team"), `{"spec":{"stopPolicy":"None"}}`, false)
		k.untilRuns(waiting)
		k.patch(k.find(waiting), `{"spec":{"active":false}}`, false)
		k.until(waiting, "Failure", "Failed", "Evicted", "deactivated")
		k.untilGone(waiting)
	})
	k.evictedBeforeTheStart()
}

// evictedBeforeTheStart are experiments that Kueue removes from its queue, or whose reservation it revokes.
func (k *kueueBed) evictedBeforeTheStart() {
	k.step("one that is deactivated before its start waits until it is active again", func(t *testing.T) {
		k.queue("none", 0, "")
		waiting := k.submit("none", 0)
		k.until(waiting, v1alpha1.ConditionAdmitted, "WaitingForKueue", "insufficient quota for pods")
		k.patch(k.find(waiting), `{"spec":{"active":false}}`, false)
		k.until(waiting, v1alpha1.ConditionAdmitted, "KueueDeactivated")
		k.patch(k.find(waiting), `{"spec":{"active":true}}`, false)
		k.until(waiting, v1alpha1.ConditionAdmitted, "WaitingForKueue")
	})
	k.step("an eviction between reservation and admission gives the quota back, and it is admitted later", func(t *testing.T) {
		k.create("{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: check}, spec: {controllerName: test/check}}")
		active := `{"status":{"conditions":[{"type":"Active","status":"True","reason":"Active","message":"","lastTransitionTime":"2026-11-22T12:00:00Z"}]}}`
		k.patch(k.object("AdmissionCheck", "", "check"), active, true)
		k.queue("checked", podsOfEach, "  admissionChecksStrategy: {admissionChecks: [{name: check}]}")
		key := k.submit("checked", 0)
		reserved := func() {
			k.eventually("quota is reserved", func() (bool, string) {
				w := k.find(key)
				is := conditionOf(w, "QuotaReserved")
				return strings.HasPrefix(is, "True") && !strings.HasPrefix(conditionOf(w, "Evicted"), "True"), is + ", evicted " + conditionOf(w, "Evicted")
			})
		}
		answer := func(state string) {
			k.patch(k.find(key), fmt.Sprintf(`{"status":{"admissionChecks":[{"name":"check","state":%q,"message":"says the test","lastTransitionTime":%q}]}}`,
				state, time.Now().UTC().Format(time.RFC3339)), true)
		}
		reserved()
		if e := k.experiment(key); e.Status.Phase != v1alpha1.PhaseQueued {
			t.Fatalf("it starts with its quota reserved and not admitted: %s", told(e, v1alpha1.ConditionAdmitted))
		}
		answer("Retry")
		k.until(key, v1alpha1.ConditionAdmitted, "Queued", "evicted it before it started")
		reserved()
		answer("Ready")
		k.untilRuns(key)
		k.end(key)
	})
}
