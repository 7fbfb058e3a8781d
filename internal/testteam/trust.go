package testteam

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"vignette.dev/vignette/internal/testoidc"
	"vignette.dev/vignette/internal/wholefile"
)

// authenticationFile has the login services that an API server trusts. NoIssuers is its content without any. Both are as in
// hack/devcluster/pki, which cannot be imported, as it is in a module of its own.
const authenticationFile = "authentication.yaml"

// NoIssuers is the file of an API server that trusts no login service.
var NoIssuers = []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n")

const (
	// reloadTimeout is longer than the API server takes to notice a change by asking once a minute.
	reloadTimeout = 90 * time.Second
	reloadPoll    = 500 * time.Millisecond
)

// Trust has a running API server trust a provider, by its --authentication-config file, and waits until it does.
func Trust(ctx context.Context, kube *rest.Config, file string, provider *testoidc.Provider) error {
	text, err := provider.AuthenticationConfiguration()
	if err != nil {
		return err
	}
	return Configure(ctx, kube, file, text)
}

// Configure replaces the file, and waits until the API server goes by it. The API server first asks a new issuer for its keys.
func Configure(ctx context.Context, kube *rest.Config, file string, text []byte) error {
	if err := wholefile.Write(file, text, 0o644); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return err
	}
	applied := fmt.Sprintf(`hash="sha256:%x"`, sha256.Sum256(text))
	err = wait.PollUntilContextTimeout(ctx, reloadPoll, reloadTimeout, true, func(ctx context.Context) (bool, error) {
		metrics, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		return err == nil && strings.Contains(string(metrics), applied), nil // it may be busy
	})
	if err != nil {
		return fmt.Errorf("the API server does not go by %s: its log says why", file)
	}
	return nil
}
