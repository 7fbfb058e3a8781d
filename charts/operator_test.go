package charts

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	core "vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// marker of a right beside the code that needs it.
var marker = regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:(\S+)$`)

// addRights of a rule, one for each group, resource and verb.
func addRights(to map[string]bool, rule rbacv1.PolicyRule) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				to[strings.TrimSpace(verb+" "+resource+"."+group+" "+strings.Join(rule.ResourceNames, ","))] = true
			}
		}
	}
}

// rightsOfTheCode are those that markers name in the operator's packages.
func rightsOfTheCode(t *testing.T) map[string]bool {
	t.Helper()
	rights := map[string]bool{}
	err := filepath.WalkDir("../operators", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range marker.FindAllSubmatch(text, -1) {
			rule := rbacv1.PolicyRule{}
			for field := range bytes.SplitSeq(found[1], []byte(",")) {
				key, values, _ := strings.Cut(string(field), "=")
				list := strings.Split(strings.ReplaceAll(values, `"`, ""), ";")
				switch key {
				case "groups":
					rule.APIGroups = list
				case "resources":
					rule.Resources = list
				case "resourceNames":
					rule.ResourceNames = list
				case "verbs":
					rule.Verbs = list
				}
			}
			addRights(rights, rule)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rights
}

// TestOneOperatorMayFollowSeveral: by a server-side apply, as Argo CD's, what Kubernetes had filled in for several stays.
func TestOneOperatorMayFollowSeveral(t *testing.T) {
	api, err := client.New(server.Start(t), client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, replicas := range []string{"2", "1"} {
		made := render(t, "vignette", "vignette", "-n", "default", "-s", "templates/operator.yaml", "--set", "operator.replicas="+replicas)
		for document := range strings.SplitSeq(made, "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil || object.GetKind() != "Deployment" {
				continue
			}
			object.SetNamespace("default")
			if err := api.Patch(t.Context(), object, client.Apply, client.FieldOwner("test")); err != nil { //nolint:staticcheck // it is a manifest
				t.Errorf("%s replicas: %v", replicas, err)
			}
		}
	}
}

// rightsOfTheOperator are those that the chart gives.
func rightsOfTheOperator(t *testing.T) map[string]bool {
	t.Helper()
	given := map[string]bool{}
	for document := range strings.SplitSeq(render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/operator.yaml"), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil || !strings.HasSuffix(role.Kind, "Role") || role.Name != "vignette-operator" {
			continue
		}
		for _, rule := range role.Rules {
			addRights(given, rule)
		}
	}
	return given
}

// TestTheOperatorBlocksOnlyDeletionsThatItMay: clusters with OwnerReferencesPermissionEnforcement, such as OpenShift, refuse other objects.
func TestTheOperatorBlocksOnlyDeletionsThatItMay(t *testing.T) {
	files, err := filepath.Glob("../internal/core/render/testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	given, owners := rightsOfTheOperator(t), map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "---\n") {
			var object metav1.PartialObjectMetadata
			if yaml.Unmarshal([]byte(document), &object) != nil {
				continue // it is no object
			}
			for _, owner := range object.OwnerReferences {
				owners[owner.Kind] = true
				resource, group := strings.ToLower(owner.Kind)+"s", strings.Split(owner.APIVersion, "/")[0]
				if right := "update " + resource + "/finalizers." + group; owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion && !given[right] {
					t.Errorf("%s: %s blocks the deletion of a %s, and the chart does not give %q", filepath.Base(file), object.Kind, owner.Kind, right)
				}
			}
		}
	}
	if !owners["Experiment"] || !owners["RadioNetwork"] {
		t.Errorf("the golden files have the owners %v", owners)
	}
}

// TestTheOperatorBecomesAnOwnerWhereOwnersAreGuarded: OwnerReferencesPermissionEnforcement, which OpenShift has, asks for the right to delete
// an object before somebody makes it another's.
func TestTheOperatorBecomesAnOwnerWhereOwnersAreGuarded(t *testing.T) {
	config := guardedAPI(t)
	admin, err := client.New(config, client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vignette-system", "team-nor"} {
		create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for document := range strings.SplitSeq(render(t, "vignette", "vignette", "-n", "vignette-system", "-s", "templates/operator.yaml"), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if kind := object.GetKind(); strings.HasSuffix(kind, "Role") || strings.HasSuffix(kind, "RoleBinding") {
			if !strings.HasPrefix(kind, "Cluster") {
				object.SetNamespace("vignette-system")
			}
			create(t, admin, object)
		}
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team-nor", Name: name} }
	experiment := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "first", UID: "1"}}
	operator := clientOf(t, config, "system:serviceaccount:vignette-system:vignette-operator")
	for _, object := range []client.Object{
		&v1alpha1.LiveChange{ObjectMeta: meta("slower"), Spec: v1alpha1.LiveChangeSpec{Experiment: "first", Changes: []v1alpha1.RadioChange{{Network: "wan", Silent: new(true)}}}},
		&v1alpha1.Capture{ObjectMeta: meta("frames"), Spec: v1alpha1.CaptureSpec{Experiment: "first", Network: "wan"}},
		&corev1.ServiceAccount{ObjectMeta: meta(core.WorkflowServiceAccount)},
		&rbacv1.RoleBinding{ObjectMeta: meta(core.WorkflowServiceAccount), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: core.WorkflowServiceAccount}},
	} {
		create(t, admin, object)
		before := object.DeepCopyObject().(client.Object)
		object.SetOwnerReferences([]metav1.OwnerReference{core.SharedOwner(experiment)})
		err := operator.Patch(t.Context(), object, client.MergeFrom(before))
		for deadline := time.Now().Add(20 * time.Second); apierrors.IsForbidden(err) && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			err = operator.Patch(t.Context(), object, client.MergeFrom(before)) // rights take a moment to be in force
		}
		if err != nil {
			t.Errorf("%T %s: %v", object, object.GetName(), err)
		}
	}
}

// guardedAPI is an API server that guards who becomes an owner.
func guardedAPI(t *testing.T) *rest.Config {
	t.Helper()
	binary := testkube.Binary()
	if binary == "" {
		t.Skip(testkube.NoBinaryHint)
	}
	environment, err := testkube.Environment(binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	environment.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	config, err := environment.Start()
	if err != nil {
		t.Fatal(errors.Join(err, environment.Stop()))
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	return config
}

func TestTheOperatorHasTheRightsThatItsCodeNeeds(t *testing.T) {
	given := rightsOfTheOperator(t)
	needed := rightsOfTheCode(t)
	for _, right := range slices.Sorted(maps.Keys(given)) {
		if !needed[right] {
			t.Errorf("the chart gives %q, which no marker in operators/ names", right)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(needed)) {
		if !given[right] {
			t.Errorf("the chart does not give %q, which a marker in operators/ names", right)
		}
	}
}

// TestAnInstallStartsWhatHasChanged: the tag of a developer's images stays the same, so the digest has each program of the platform's own pods.
func TestAnInstallStartsWhatHasChanged(t *testing.T) {
	install, err := os.ReadFile("../hack/install")
	if err != nil {
		t.Fatal(err)
	}
	digested, _, _ := strings.Cut(string(install), "sha256sum")
	for _, image := range []string{"operator", "server", "console", "radiod"} {
		dockerfile, err := os.ReadFile("../images/" + image + "/Dockerfile")
		if err != nil {
			t.Fatal(err)
		}
		programs := regexp.MustCompile(`\bbin/\w+`).FindAllString(strings.Join(regexp.MustCompile(`(?m)^COPY bin/.*$`).FindAllString(string(dockerfile), -1), "\n"), -1)
		if len(programs) == 0 {
			t.Errorf("image %s has no program", image)
		}
		for _, program := range programs {
			if !strings.Contains(digested, program+" ") {
				t.Errorf("the digest of hack/install has no %s", program)
			}
		}
	}
}
