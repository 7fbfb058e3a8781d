//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// TestExperimentsWithEqualNamesAndSubnetsNeverSeeEachOther has two experiments each of two teams, with equal names and subnets.
// A fifth exceeds the first team's quota until one of its two has ended.
func TestExperimentsWithEqualNamesAndSubnetsNeverSeeEachOther(t *testing.T) {
	t.Parallel()
	teams := []string{newNamespace(t), newNamespace(t)}
	// Two pairs, each with a step of its workflow. Quotas of requests admit no container without them, Argo's neither.
	mustCreate(t, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: teams[0], Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("6"), corev1.ResourceRequestsCPU: resource.MustParse("4"), corev1.ResourceRequestsMemory: resource.MustParse("8Gi"),
	}}})
	var all []*v1alpha1.Experiment
	for _, team := range teams {
		for _, name := range []string{"twin", "second"} {
			e := broadcasters(team, name, 2, "10ms", "bytes:900").Obj()
			mustCreate(t, e)
			all = append(all, e)
		}
	}
	for _, e := range all[:2] {
		eventually(t, startTimeout, e.Name+" to be admitted", func() error {
			if now := get(t, e); !meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionAdmitted) {
				return errorf("phase %q: %s", now.Status.Phase, now.Status.Message)
			}
			return nil
		})
	}
	fifth := broadcasters(teams[0], "fifth", 2, "10ms", "bytes:900").Obj()
	mustCreate(t, fifth)
	eventually(t, time.Minute, "the quota that the fifth waits for to be named", func() error {
		now := get(t, fifth)
		c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionAdmitted)
		if now.Status.Phase != v1alpha1.PhaseQueued || c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "team") {
			return errorf("phase %q, Admitted %+v", now.Status.Phase, c)
		}
		return nil
	})
	for _, e := range append(all, fifth) {
		done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
		m := resultsOf(t, done.UID).Messages
		if m.Sent < 800 {
			t.Errorf("%s/%s sent %d messages; want full load, 800 at least", e.Namespace, e.Name, m.Sent)
		}
		// Equal names make equal message ids, so a frame from the other experiment would count as a duplicate.
		if m.Duplicates != 0 || m.Lost != 0 {
			t.Errorf("%s/%s: %+v; want no loss and not one frame of its twin", e.Namespace, e.Name, m)
		}
	}
	if first, last := get(t, all[0]), get(t, fifth); !last.Status.StartTime.After(first.Status.T0.Time) {
		t.Errorf("the fifth began at %v, before the first two had sent anything (%v)", last.Status.StartTime, first.Status.T0)
	}
}

// tenant is a user with roles in a namespace.
type tenant struct {
	namespace string
	client.Client
	config *rest.Config
}

// newTenant makes a tenant with some of the cluster's roles in a new namespace.
func newTenant(t *testing.T, roles ...string) *tenant {
	t.Helper()
	a := &tenant{namespace: newNamespace(t), config: rest.CopyConfig(restConfig)}
	a.config.Impersonate = rest.ImpersonationConfig{UserName: a.namespace + "-user", Groups: []string{"system:authenticated"}}
	for _, role := range roles {
		mustCreate(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: role},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: a.config.Impersonate.UserName}}})
	}
	var err error
	if a.Client, err = client.New(a.config, client.Options{Scheme: testScheme, Mapper: kube.RESTMapper()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the API server to know of the roles", func() error {
		return a.List(t.Context(), &v1alpha1.ExperimentList{}, client.InNamespace(a.namespace))
	})
	return a
}

// read reads a path of the API server.
func (a *tenant) read(t *testing.T, path ...string) ([]byte, error) {
	t.Helper()
	return readAs(t, a.config, path...)
}

func readAs(t *testing.T, config *rest.Config, path ...string) ([]byte, error) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clientset.CoreV1().RESTClient().Get().AbsPath(path...).DoRaw(t.Context())
}

// TestATenantsAttemptsAreRefused runs a team's experiment, while others try to access it.
func TestATenantsAttemptsAreRefused(t *testing.T) {
	t.Parallel()
	victim := newTenant(t, "vignette-experimenter")
	e := pair(victim.namespace, "victim").Duration("60s").Obj()
	e.Spec.Timeline[1].At = "60s"
	if err := victim.Create(t.Context(), e); err != nil {
		t.Fatalf("an experimenter's own experiment: %v", err)
	}
	// This tenant has more rights in its namespace than vignette-experimenter gives: all but the platform's.
	thief := newTenant(t, "edit", "vignette-admin")
	waitFor(t, e, startTimeout, v1alpha1.PhaseRunning)
	e = get(t, e)
	t.Run("results", func(t *testing.T) { resultsAreTheTeams(t, victim, thief, e) })
	t.Run("objects", func(t *testing.T) { objectsAreTheTeams(t, thief, e) })
	t.Run("host network", func(t *testing.T) {
		pod := idlePod(t, thief.namespace, "on-the-host")
		pod.Spec.HostNetwork = true
		if err := thief.Create(t.Context(), pod); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "host namespaces") {
			t.Errorf("%v; want Pod Security to refuse it", err)
		}
	})
	t.Run("another team's run named in one's own namespace", func(t *testing.T) { liveObjectsNameTheirOwnNamespace(t, thief) })
	t.Run("radio", func(t *testing.T) { radiosAreForMembers(t, thief, e) })
}

func resultsAreTheTeams(t *testing.T, victim, thief *tenant, e *v1alpha1.Experiment) {
	own, run := runapi.ArchivePath(victim.namespace), "v1/runs/"+string(e.UID)
	if text, err := victim.read(t, own, run); err != nil || !strings.Contains(string(text), `"victim"`) {
		t.Errorf("the team's own run: %.100s, %v", text, err)
	}
	for name, path := range map[string]string{
		"the other team's archive":       own,
		"the archive of all":             runapi.ArchivePath(""),
		"the service's proxy":            "/api/v1/namespaces/" + platformNamespace + "/services/http:vignette-server:http/proxy",
		"the other's run by one's own":   runapi.ArchivePath(thief.namespace),
		"all metrics by one's own":       runapi.ArchivePath(thief.namespace) + "/metrics",
		"the other's run, up and around": runapi.ArchivePath(thief.namespace) + "/v1/../../../../../" + victim.namespace + "/archives/default/proxy",
	} {
		if text, err := thief.read(t, path, run); err == nil || strings.Contains(string(text), "victim") {
			t.Errorf("%s: %.100s, %v; want it refused", name, text, err)
		}
	}
	if text, err := thief.read(t, runapi.ArchivePath(thief.namespace), "v1/runs"); err != nil || strings.TrimSpace(string(text)) != "[]" {
		t.Errorf("one's own archive: %.100s, %v; want it empty", text, err)
	}
	// The server treats even a user of the proxy as anonymous, as the proxy removes the token.
	_, err := readAs(t, restConfig, "/api/v1/namespaces/"+platformNamespace+"/services/http:vignette-server:http/proxy", run)
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("by the service's proxy, as the cluster's administrator: %v; want 401", err)
	}
}

func objectsAreTheTeams(t *testing.T, thief *tenant, e *v1alpha1.Experiment) {
	member := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "victim-veh"}}
	radio := func(namespace string) client.Object {
		return &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stolen"}}
	}
	ctx := t.Context()
	stop := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"stop":true}}`))
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"vignette.dev/experiment":"mine"}}}`))
	for name, attempt := range map[string]func() error{
		"reading another's experiment":  func() error { return thief.Get(ctx, client.ObjectKeyFromObject(e), &v1alpha1.Experiment{}) },
		"stopping another's experiment": func() error { return thief.Patch(ctx, e.DeepCopy(), stop) },
		"deleting another's experiment": func() error { return thief.Delete(ctx, e.DeepCopy()) },
		"labelling another's pod":       func() error { return thief.Patch(ctx, member.DeepCopy(), label) },
		"listing the radio networks": func() error {
			return thief.List(ctx, &v1alpha1.RadioNetworkList{}, client.InNamespace(platformNamespace))
		},
		"a radio network in the platform's":  func() error { return thief.Create(ctx, radio(platformNamespace)) },
		"a radio network in one's own":       func() error { return thief.Create(ctx, radio(thief.namespace)) },
		"an attachment definition":           func() error { return thief.Create(ctx, attachment(thief.namespace)) },
		"a live change in another's":         func() error { return thief.Create(ctx, liveChange(e.Namespace)) },
		"a capture in another's":             func() error { return thief.Create(ctx, capture(e.Namespace)) },
		"the status of one's own experiment": func() error { return thief.Status().Patch(ctx, e.DeepCopy(), stop) },
		"a pod in the platform's namespace":  func() error { return thief.Create(ctx, idlePod(t, platformNamespace, "intruder")) },
		"a waveform, which all teams use": func() error {
			return thief.Create(ctx, &v1alpha1.Waveform{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
		},
		"the API of the archive to one's own": func() error {
			return thief.Get(ctx, client.ObjectKey{Name: "v1alpha1.results.vignette.dev"}, apiService())
		},
	} {
		if err := attempt(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v; want it forbidden", name, err)
		}
	}
	if err := thief.List(ctx, &v1alpha1.WaveformList{}); err != nil {
		t.Errorf("waveforms, which all teams may see: %v", err)
	}
}

func liveChange(namespace string) *v1alpha1.LiveChange {
	return &v1alpha1.LiveChange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "silence"}, Spec: v1alpha1.LiveChangeSpec{Experiment: "victim",
		Changes: []v1alpha1.RadioChange{{Network: "wan", Link: &v1alpha1.LinkPatch{Loss: new(v1alpha1.Percent("100%"))}}}}}
}

func capture(namespace string) *v1alpha1.Capture {
	return &v1alpha1.Capture{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "listen"}, Spec: v1alpha1.CaptureSpec{Experiment: "victim", Network: "wan"}}
}

func apiService() client.Object {
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	return service
}

// liveObjectsNameTheirOwnNamespace: a name is resolved only in the namespace of its object.
func liveObjectsNameTheirOwnNamespace(t *testing.T, thief *tenant) {
	change, listen := liveChange(thief.namespace), capture(thief.namespace)
	for _, object := range []client.Object{change, listen} {
		if err := thief.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, time.Minute, "both to be told that there is no such experiment", func() error {
		for _, object := range []client.Object{change, listen} {
			if err := thief.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
		}
		for _, conditions := range [][]metav1.Condition{change.Status.Conditions, listen.Status.Conditions} {
			if said := fmt.Sprint(conditions); !strings.Contains(said, "there is no experiment victim in namespace "+thief.namespace) {
				return errorf("conditions %s", said)
			}
		}
		return nil
	})
}

// attachment is a tenant's definition for the radio plugin, with the name and content of the victim's.
func attachment(namespace string) *unstructured.Unstructured {
	definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"config": `{"cniVersion":"1.0.0","name":"victim-wan","type":"radio","network":"wan"}`}}}
	definition.SetAPIVersion("k8s.cni.cncf.io/v1")
	definition.SetKind("NetworkAttachmentDefinition")
	definition.SetNamespace(namespace)
	definition.SetName("victim-wan")
	return definition
}

// radiosAreForMembers starts pods with everything of a member but its UID.
func radiosAreForMembers(t *testing.T, thief *tenant, e *v1alpha1.Experiment) {
	var member corev1.Pod
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: e.Namespace, Name: "victim-veh"}, &member); err != nil {
		t.Fatal(err)
	}
	annotations := map[string]string{}
	for key, value := range member.Annotations {
		if !strings.Contains(key, "network-status") {
			annotations[key] = value
		}
	}
	copied := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "impostor", Labels: member.Labels, Annotations: annotations}, Spec: *member.Spec.DeepCopy()}
	copied.Spec.NodeName, copied.Spec.SchedulingGates = "", nil
	mustCreate(t, copied)
	// The cluster's administrator makes the definition for the team; the pods are the team's own.
	mustCreate(t, attachment(thief.namespace))
	foreign := func(name, namespace string) *corev1.Pod {
		pod := idlePod(t, thief.namespace, name)
		pod.Labels, pod.Annotations = member.Labels, map[string]string{}
		for key, value := range annotations {
			pod.Annotations[key] = strings.ReplaceAll(value, e.Namespace, namespace)
		}
		if err := thief.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	wantRefused(t, copied, "not a member")
	wantRefused(t, foreign("victim-veh", thief.namespace), "not a member")
	wantRefused(t, foreign("victim-hq", e.Namespace), "solation") // Multus refuses before radiod is asked
}

// wantRefused wants a pod without a network, with an event that states the reason.
func wantRefused(t *testing.T, pod *corev1.Pod, why string) {
	t.Helper()
	eventually(t, time.Minute, "pod "+pod.Namespace+"/"+pod.Name+" to be refused", func() error {
		var events corev1.EventList
		if err := kube.List(t.Context(), &events, client.InNamespace(pod.Namespace)); err != nil {
			return err
		}
		var said []string
		for _, event := range events.Items {
			if event.InvolvedObject.UID == pod.UID && strings.Contains(event.Message, why) {
				return nil
			}
			if event.InvolvedObject.UID == pod.UID {
				said = append(said, event.Message)
			}
		}
		return errorf("no event says %q: %q", why, said)
	})
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	if pod.Status.Phase != corev1.PodPending {
		t.Errorf("pod %s/%s is %s; want it never to run", pod.Namespace, pod.Name, pod.Status.Phase)
	}
}

// idlePod does nothing, within Pod Security restricted.
func idlePod(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "idle", Image: mosquittoImage(t), Command: []string{"/bin/sleep", "600"},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		TerminationGracePeriodSeconds: new(int64(0)),
	}}
}
