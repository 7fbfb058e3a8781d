package charts

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	to "k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/testkube"
)

// TestContainersBroughtIntoPodsGetNoSecretsAndNoPrivileges has a real API server judge by the chart's policy and role.
func TestContainersBroughtIntoPodsGetNoSecretsAndNoPrivileges(t *testing.T) {
	policy := render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/admission.yaml")
	role := render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/roles.yaml")
	config := server.Start(t)
	admin, err := client.New(config, client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(policy+"\n"+role, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			create(t, admin, object)
		}
	}
	create(t, admin, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}})
	create(t, admin, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "node"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}})
	create(t, admin, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kari"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "vignette-experimenter"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "kari"}}})
	create(t, admin, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "debugger"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}, {APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{"patch"}}}})
	create(t, admin, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ola"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "debugger"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ola"}}})
	kari, ola := clientOf(t, config, "kari"), clientOf(t, config, "ola")
	secret := corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"}}}
	deadline := time.Now().Add(20 * time.Second) // a policy takes a moment to be in force
	for err = nil; err == nil && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		err = bring(t, kari, corev1.EphemeralContainerCommon{Name: "a", Image: "toolbox", Env: []corev1.EnvVar{secret}}, client.DryRunAll)
	}
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "unless you may read Secrets") {
		t.Errorf("a variable of a Secret: %v; want it refused", err)
	}
	from := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}
	if err := bring(t, kari, corev1.EphemeralContainerCommon{Name: "a", Image: "toolbox", EnvFrom: []corev1.EnvFromSource{from}}); !apierrors.IsForbidden(err) {
		t.Errorf("all of a Secret: %v; want it refused", err)
	}
	if err := bring(t, admin, corev1.EphemeralContainerCommon{Name: "a", Image: "toolbox", Env: []corev1.EnvVar{secret}}, client.DryRunAll); err != nil {
		t.Errorf("for who may read Secrets: %v", err)
	}
	for what, security := range map[string]*corev1.SecurityContext{
		"privileges":           {Privileged: to.To(true)},
		"a capability":         {Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN"}}},
		"all else but one":     {Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"NET_ADMIN"}}},
		"those of the runtime": nil,
	} {
		container := corev1.EphemeralContainerCommon{Name: "b", Image: "toolbox", SecurityContext: security}
		if err := bring(t, kari, container, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "unless you may create pods") {
			t.Errorf("%s: %v; want it refused", what, err)
		}
		for who, as := range map[string]client.Client{"who may create pods": admin, "who runs no experiments": ola} {
			if err := bring(t, as, container, client.DryRunAll); err != nil {
				t.Errorf("%s for %s: %v", what, who, err)
			}
		}
	}
	restricted := &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	if err := bring(t, admin, corev1.EphemeralContainerCommon{Name: "admins", Image: "toolbox", SecurityContext: &corev1.SecurityContext{Privileged: to.To(true)}}); err != nil {
		t.Fatal(err)
	}
	if err := bring(t, kari, corev1.EphemeralContainerCommon{Name: "toolbox-1", Image: "toolbox", SecurityContext: restricted, Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}); err != nil {
		t.Errorf("the toolbox: %v", err)
	}
}

func clientOf(t *testing.T, config *rest.Config, user string) client.Client {
	t.Helper()
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: user}
	made, err := client.New(as, client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func create(t *testing.T, kube client.Client, object client.Object) {
	t.Helper()
	if err := kube.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// bring a container into the pod, as a user.
func bring(t *testing.T, as client.Client, container corev1.EphemeralContainerCommon, options ...client.SubResourcePatchOption) error {
	t.Helper()
	pod := &corev1.Pod{}
	if err := as.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "node"}, pod); err != nil {
		t.Fatal(err)
	}
	before := pod.DeepCopy()
	pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: container})
	return as.SubResource("ephemeralcontainers").Patch(t.Context(), pod, client.StrategicMergeFrom(before), options...)
}
