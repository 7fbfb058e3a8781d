package metricreaders

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"vignette.dev/vignette/internal/testkube"
)

func TestARealAPIServerSaysWhoReadsMetrics(t *testing.T) {
	config := testkube.Start(t)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	tokenOf := func(name string) string {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if _, err := kube.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		made, err := kube.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + made.Status.Token
	}
	// As the chart's ClusterRole vignette-metrics-reader has it.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{Path}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "prometheus"}}}
	if _, err := kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	readers, err := New(config, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	guarded := readers.Only(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for who, c := range map[string]struct {
		authorization string
		want          int
	}{
		"nobody":              {"", http.StatusUnauthorized},
		"somebody unknown":    {"Bearer x", http.StatusUnauthorized},
		"a team's account":    {tokenOf("team"), http.StatusForbidden},
		"Prometheus' account": {tokenOf("prometheus"), http.StatusOK},
	} {
		request, answer := httptest.NewRequest(http.MethodGet, "/api/v1/query", http.NoBody), httptest.NewRecorder()
		request.Header.Set("Authorization", c.authorization)
		if guarded.ServeHTTP(answer, request); answer.Code != c.want {
			t.Errorf("%s: %d, want %d", who, answer.Code, c.want)
		}
	}
}
