package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/testkube"
)

// install what the chart makes, as far as the checks look at it.
func install(t *testing.T, kube client.Client) {
	t.Helper()
	create := func(o client.Object) {
		t.Helper()
		if err := kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vignette-system", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}}})
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-nor"}})
	create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: "example.org/local"})
	labels := map[string]string{"app": "x"}
	template := func(image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "a", Image: image}},
			Volumes:    []corev1.Volume{{Name: "cni-bin", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/opt/cni/bin"}}}},
		}}
	}
	named := metav1.ObjectMeta{Namespace: "vignette-system", Labels: map[string]string{"app.kubernetes.io/version": "0.1.0"}}
	operator := &appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template("r/operator:1")}}
	operator.Name = "vignette-operator"
	operator.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "default"}})
	create(operator)
	operator.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1}
	radiod := &appsv1.DaemonSet{ObjectMeta: named, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template("r/radiod:2")}}
	radiod.Name = "vignette-radiod"
	create(radiod)
	radiod.Status = appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, NumberReady: 2, UpdatedNumberScheduled: 1}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h1"}}
	create(node)
	tainted := node.DeepCopy() // by the API server, until it is ready
	node.Spec.Taints = nil
	if err := kube.Patch(t.Context(), node, client.MergeFrom(tainted)); err != nil {
		t.Fatal(err)
	}
	node.Status.NodeInfo = corev1.NodeSystemInfo{OperatingSystem: "linux", KernelVersion: "6.1.0-18-amd64"}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, o := range []client.Object{operator, radiod, node} {
		if err := kube.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for host, offset := range map[string]time.Duration{"h1": 0, "h2": -9 * time.Second} {
		now := metav1.NewMicroTime(time.Now().Add(offset))
		create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: host}, Spec: coordinationv1.LeaseSpec{RenewTime: &now}})
	}
	create(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "e"}, Reason: "FailedCreatePodSandBox", Message: `failed to find plugin "radio" in path [/opt/cni/bin]`,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "team-nor", Name: "a-hq"}})
}

func TestDoctorAgainstARealAPIServer(t *testing.T) {
	config := testkube.Start(t)
	admin, err := newGatherer(config, "team-nor", "vignette-system")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("without the platform", func(t *testing.T) {
		r := CheckCluster(Gather(t.Context(), config, "default", "vignette-system", "0.1.0"))
		expect(t, r, map[string]string{"API server": "ok", "Kubernetes": "ok v1.", "Argo Workflows": "missing", "Multus": "ok", "hosts": "missing 0 of 0", "definitions": "ok all",
			"operator": "missing", "archive's API": "missing", "storage": "missing no default StorageClass", "right: run experiments": "ok"})
	})
	install(t, admin.kube)
	t.Run("for an administrator", func(t *testing.T) {
		r := CheckCluster(Gather(t.Context(), config, "team-nor", "vignette-system", "0.1.0"))
		expect(t, r, map[string]string{"hosts": "ok 1 of 1", "kernels": "ok 6.1.0-18-amd64", "operator": "ok 1 of 1 ready (1)", "radiod": "warning 2 of 2 ready, 1 of an earlier version",
			"server": "missing", "versions": "warning images of 1 and 2", "storage": "ok default class local", "Pod Security": "missing vignette-system enforces baseline",
			"pull secrets": "warning not in namespace team-nor: registry",
			"CNI folder":   "missing the container runtime does not find the plugin radio, as for team-nor/a-hq", "clocks": "warning off from the API server's: h2 by -"})
	})
	t.Run("older definitions", func(t *testing.T) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := admin.kube.Get(t.Context(), client.ObjectKey{Name: "captures.vignette.dev"}, definition); err != nil {
			t.Fatal(err)
		}
		definition.Spec.Versions[0].AdditionalPrinterColumns = nil
		if err := admin.kube.Update(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		r := CheckCluster(Gather(t.Context(), config, "team-nor", "vignette-system", "0.1.0"))
		expect(t, r, map[string]string{"definitions": "warning of another version than this program: captures.vignette.dev"})
	})
	t.Run("with a pull secret", func(t *testing.T) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "default"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}}
		if err := errors.Join(admin.kube.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "registry"}}), admin.kube.Update(t.Context(), account)); err != nil {
			t.Fatal(err)
		}
		r := CheckCluster(Gather(t.Context(), config, "team-nor", "vignette-system", "0.1.0"))
		expect(t, r, map[string]string{"pull secrets": "ok registry, in namespace team-nor"})
	})
	t.Run("with a claim of one's own for the archive", func(t *testing.T) { seenWithAnOwnClaim(t, config, admin.kube) })
	t.Run("for an experimenter", func(t *testing.T) { seenByAnExperimenter(t, config) })
	t.Run("of no cluster", func(t *testing.T) {
		r := CheckCluster(Gather(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, "team-nor", "vignette-system", ""))
		expect(t, r, map[string]string{"API server": "missing"})
	})
}

// seenWithAnOwnClaim: the chart's server.storage.existingClaim needs no default StorageClass.
func seenWithAnOwnClaim(t *testing.T, config *rest.Config, kube client.Client) {
	labels := map[string]string{"app": "x"}
	volume := corev1.Volume{Name: "archive", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "own"}}}
	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "vignette-system", Name: "vignette-server"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "r/server:1"}}, Volumes: []corev1.Volume{volume}}}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "vignette-system", Name: "own"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
	if err := kube.Create(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	r := CheckCluster(Gather(t.Context(), config, "team-nor", "vignette-system", "0.1.0"))
	expect(t, r, map[string]string{"storage": "missing there is no claim own"})
	if err := kube.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	claim.Status.Phase = corev1.ClaimBound
	if err := kube.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r = CheckCluster(Gather(t.Context(), config, "team-nor", "vignette-system", "0.1.0"))
	expect(t, r, map[string]string{"storage": "ok the archive's claim is bound"})
}

// seenByAnExperimenter: who has no rights on the cluster's own objects is told of his own, and nothing fails by what he may not read.
func seenByAnExperimenter(t *testing.T, config *rest.Config) {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "some"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"vignette.dev"}, Resources: []string{"experiments"}, Verbs: []string{"create"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "some"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "some"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "kari"}}}
	admin, err := client.New(config, client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{role, binding} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "kari", Groups: []string{"system:authenticated"}}
	r := CheckCluster(Gather(t.Context(), as, "team-nor", "vignette-system", "0.1.0"))
	expect(t, r, map[string]string{"Kubernetes": "ok", "hosts": "unknown you may not read it", "operator": "unknown you may not read it", "clocks": "unknown", "storage": "unknown",
		"right: run experiments": "ok in namespace team-nor", "right: read results": "missing not in namespace team-nor", "right: open shells": "warning"})
}

// expect states, each with the beginning of what was found.
func expect(t *testing.T, r Report, want map[string]string) {
	t.Helper()
	for name, begin := range want {
		c := checkOf(t, r, name)
		if got := fmt.Sprintf("%s %s", c.State, c.Found); !strings.HasPrefix(got, begin) {
			t.Errorf("%s: %s (%s); want %s…", name, got, c.Remedy, begin)
		}
	}
}
