package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// target is the cluster and namespace of a command.
type target struct {
	kubeconfig, context, namespace, platform string
}

func (t *target) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&t.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: KUBECONFIG, else ~/.kube/config)")
	flags.StringVar(&t.context, "context", "", "`name` of the context in the kubeconfig")
	flags.StringVarP(&t.namespace, "namespace", "n", "", "`namespace` of the experiment (default: the context's)")
	flags.StringVar(&t.platform, "platform-namespace", "vignette-system", "`namespace` of the platform")
}

// cluster is a connection to a cluster with the platform.
type cluster struct {
	namespace string
	config    *rest.Config
	kube      client.Client
	// archive of the namespace's results, through the API server.
	archive *runclient.Client
}

// contextName is that of the kubeconfig's context in use; empty without one.
func (t *target) contextName() string {
	if t.context != "" {
		return t.context
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	config, err := rules.Load()
	if err != nil {
		return ""
	}
	return config.CurrentContext
}

// run makes a command's function of one that works with the cluster.
func (t *target) run(do func(c *cluster, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := t.connect(cmd.Context())
		if err != nil {
			return err
		}
		return do(c, cmd, args)
	}
}

// connect to the cluster. Its kinds are asked for when they are needed, until ctx ends.
func (t *target) connect(ctx context.Context) (*cluster, error) {
	config, namespace, err := t.load()
	if err != nil {
		return nil, err
	}
	return dial(ctx, config, namespace)
}

// errNotConfigured is for users without a cluster.
var errNotConfigured = errors.New("there is no kubeconfig, or it is empty")

// load the configuration, and the namespace of the experiments.
func (t *target) load() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: t.context})
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = errNotConfigured
	}
	if bad := notKubeconfig(rules); err != nil && bad != nil {
		return nil, "", bad
	}
	if err != nil {
		return nil, "", fmt.Errorf("no cluster is configured: %w (set KUBECONFIG or --kubeconfig; for the developer cluster: eval \"$(hack/cluster env)\")", err)
	}
	config.QPS = -1 // a handful of requests a second; the default limiter would only delay them
	namespace := t.namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, "", err
		}
	}
	return config, namespace, nil
}

// notKubeconfig names a file that is read and is no kubeconfig, as the library's error is in Go's words.
func notKubeconfig(rules *clientcmd.ClientConfigLoadingRules) error {
	for _, name := range rules.GetLoadingPrecedence() {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the library's error says why, or the file is not needed
		}
		if _, err := clientcmd.Load(text); err != nil {
			return fmt.Errorf("%s is not a kubeconfig: want a file such as kubectl config view --raw prints (set KUBECONFIG or --kubeconfig)", name)
		}
	}
	return nil
}

// untilEnd ends requests with a context, as those for an API server's kinds have none of their own.
type untilEnd struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (u untilEnd) RoundTrip(r *http.Request) (*http.Response, error) {
	return u.next.RoundTrip(r.WithContext(u.ctx))
}

func dial(ctx context.Context, config *rest.Config, namespace string) (*cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, &http.Client{Transport: untilEnd{ctx, cmp.Or(httpClient.Transport, http.DefaultTransport)}})
	if err != nil {
		return nil, explain(err)
	}
	kube, err := client.New(config, client.Options{Scheme: scheme, HTTPClient: httpClient, Mapper: mapper})
	if err != nil {
		return nil, explain(err)
	}
	base, err := archiveURL(config, namespace)
	if err != nil {
		return nil, err
	}
	return &cluster{namespace: namespace, config: config, kube: kube, archive: runclient.New(base, httpClient, runclient.NoToken)}, nil
}

// archiveURL is a namespace's archive as an API of the API server, which authenticates the user.
func archiveURL(config *rest.Config, namespace string) (string, error) {
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", err
	}
	return host.JoinPath(runapi.ArchivePath(namespace)).String(), nil
}

// explained is an error that already says what to do.
type explained struct{ error }

func (e explained) Unwrap() error { return e.error }

// explain adds what to do about an error of the API server, once.
func explain(err error) error {
	switch {
	case err == nil || errors.As(err, new(explained)):
		return err
	case meta.IsNoMatchError(err):
		return errors.New("the cluster does not know vignette's objects: install the chart (docs/how-to/install.md)")
	case errors.As(err, new(*url.Error)):
		return explained{fmt.Errorf("cannot reach the cluster: %w (is it up? the developer cluster: hack/cluster up)", err)}
	case apierrors.IsUnauthorized(err):
		return explained{errors.New("the cluster does not accept your login: log in again, or choose another user of the kubeconfig with --context")}
	case apierrors.IsForbidden(err):
		return explained{fmt.Errorf("%w: ask the cluster's administrator for the right, or choose another namespace with -n", err)}
	}
	return err
}

// isMissingNamespace reports whether an object's namespace does not exist.
func isMissingNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// apiServerMessage is the API server's own answer, if the request did not reach the platform's server.
func apiServerMessage(e *runclient.Error) string {
	var answer metav1.Status
	if json.Unmarshal([]byte(e.Message), &answer) != nil {
		return ""
	}
	return answer.Message
}

// explainArchive adds what to do about an error of the archive.
func (t *target) explainArchive(err error) error {
	e := asServerError(err)
	if e == nil {
		return explain(err)
	}
	answer := apiServerMessage(e)
	if answer != "" {
		err = errors.New(answer)
	}
	switch {
	case e.Status == http.StatusForbidden:
		return fmt.Errorf("%w: reading results needs the role vignette-viewer in the namespace: kubectl create rolebinding (docs/how-to/share-a-cluster.md)", err)
	case e.Status == http.StatusServiceUnavailable || e.Status == http.StatusBadGateway:
		return fmt.Errorf("%w: the archive is not up: kubectl -n %s get pods", err, t.platform)
	case e.Status == http.StatusNotFound && (answer != "" || strings.HasPrefix(e.Message, "404 page not found")): // no such API
		return fmt.Errorf("%w: is the platform installed? kubectl get apiservice %s.%s", err, runapi.ArchiveVersion, runapi.ArchiveGroup)
	}
	return err
}
