package console

import (
	"cmp"
	"errors"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/capacity"
	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// capacity answers with what `vignette capacity -o json` prints to the same user.
func (c *Console) capacity(w http.ResponseWriter, r *http.Request, user *User) error {
	browser := &http.Client{Transport: user.Transport}
	kube, err := newReader(user, browser)
	if err != nil {
		return err
	}
	namespace := cmp.Or(r.URL.Query().Get("namespace"), user.Namespace, corev1.NamespaceDefault)
	archive := runclient.New(user.Server.JoinPath(runapi.ArchivePath(namespace)).String(), browser, runclient.NoToken)
	state, err := capacity.Reader{Kube: kube, Archive: archive, Namespace: namespace, Explain: func(err error) error { return c.explainRead(user, err) }}.Read(r.Context())
	if err != nil {
		return err
	}
	return WriteJSON(w, capacity.Of(state))
}

// explainRead has words also for what the archive's own server answers.
func (c *Console) explainRead(user *User, err error) error {
	if answer, ok := errors.AsType[*runclient.Error](err); ok {
		return Errorf(answer.Status, "the archive answers %d %s", answer.Status, http.StatusText(answer.Status))
	}
	return c.explain(user, err)
}

// newReader reads objects as the user. It knows where the API server has each kind, which saves asking for that.
func newReader(user *User, browser *http.Client) (client.Reader, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	for _, kind := range []string{"Pod", "ResourceQuota"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	for _, kind := range []string{"Experiment", "NodeTemplate"} {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return client.New(user.Config, client.Options{HTTPClient: browser, Scheme: scheme, Mapper: mapper})
}
