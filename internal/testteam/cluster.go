package testteam

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/internal/testoidc"
)

// consoleNamespace has the console of a test, beside that of the platform.
const consoleNamespace = "console-team"

const (
	// goneTimeout is how long a namespace of the test before may take to go, and a console to come.
	goneTimeout = 2 * time.Minute
	clusterPoll = 500 * time.Millisecond
	// cleanTimeout is for deleting a namespace that a test leaves behind.
	cleanTimeout = 30 * time.Second
)

// ErrNoFile means that a cluster's API server reads its login services from no file that is known here.
var ErrNoFile = errors.New("this is no developer cluster whose API server reads its login services from a file: hack/cluster down, then up, renews an older one")

// StartOnCluster makes the teams on a developer cluster that has the platform, and the chart's console for them. The archive is the platform's.
// The address of the console within the cluster is ConsoleURL.
func StartOnCluster(ctx context.Context, kubeconfig, charts, origin string) (w *World, err error) {
	w = &World{file: filepath.Join(filepath.Dir(kubeconfig), "pki", authenticationFile)}
	if _, err := os.Stat(w.file); err != nil {
		return w, ErrNoFile
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Stop())
		}
	}()
	if w.Kube, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return w, err
	}
	w.Kube.QPS, w.Kube.Burst = -1, 0
	if w.Objects, err = client.New(w.Kube, client.Options{Scheme: testkube.Scheme()}); err != nil {
		return w, err
	}
	address, err := w.ownAddress()
	if err != nil {
		return w, err
	}
	if err := w.startProvider(address, origin); err != nil {
		return w, err
	}
	if err := w.trustBesideOthers(ctx); err != nil {
		return w, err
	}
	if err := w.makeNamespaces(ctx); err != nil {
		return w, err
	}
	for namespace := range Words {
		if err := w.applyRoles(ctx, charts, namespace); err != nil {
			return w, err
		}
		if err := w.create(ctx, namespace, ObjectsOf(namespace), "Experiment", "Campaign", "ConfigMap"); err != nil {
			return w, err
		}
	}
	return w, w.applyConsole(ctx, charts, origin)
}

// ownAddress of this machine, as the cluster's nodes reach it.
func (w *World) ownAddress() (string, error) {
	server, err := url.Parse(w.Kube.Host)
	if err != nil {
		return "", err
	}
	connection, err := net.Dial("udp", server.Host)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	return connection.LocalAddr().(*net.UDPAddr).IP.String(), nil
}

// trustBesideOthers adds the login service to those that the cluster has. At the end the file is as before.
func (w *World) trustBesideOthers(ctx context.Context) error {
	var known, own map[string]any
	before, err := os.ReadFile(w.file)
	if err != nil {
		return err
	}
	added, err := w.Provider.AuthenticationConfiguration()
	if err != nil {
		return err
	}
	if err := errors.Join(yaml.Unmarshal(before, &known), yaml.Unmarshal(added, &own)); err != nil {
		return err
	}
	issuers, _ := known["jwt"].([]any)
	issuers = slices.DeleteFunc(issuers, isOfTest) // one of a test that was killed
	known["jwt"] = issuers
	if before, err = yaml.Marshal(known); err != nil {
		return err
	}
	known["jwt"] = append(slices.Clone(issuers), own["jwt"].([]any)...)
	after, err := yaml.Marshal(known)
	if err != nil {
		return err
	}
	// Configure waits for reloadTimeout at most.
	w.ends = append(w.ends, func() error { return Configure(context.Background(), w.Kube, w.file, before) })
	return Configure(ctx, w.Kube, w.file, after)
}

// isOfTest reports whether an issuer of the file is one of these tests.
func isOfTest(issuer any) bool {
	text, err := yaml.Marshal(issuer)
	return err == nil && strings.Contains(string(text), "- "+ClientID+"\n")
}

// makeNamespaces that are gone with the world.
func (w *World) makeNamespaces(ctx context.Context) error {
	for _, name := range []string{consoleNamespace, Alpha, Bravo} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
		if err := client.IgnoreNotFound(w.Objects.Delete(ctx, namespace.DeepCopy())); err != nil {
			return err
		}
		w.ends = append(w.ends, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
			defer cancel()
			return client.IgnoreNotFound(w.Objects.Delete(ctx, namespace))
		})
		err := wait.PollUntilContextTimeout(ctx, clusterPoll, goneTimeout, true, func(ctx context.Context) (bool, error) {
			err := w.Objects.Create(ctx, namespace)
			if apierrors.IsAlreadyExists(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

// applyConsole of the chart, in a namespace of its own: an upgrade of the platform would be in the way of other tests.
func (w *World) applyConsole(ctx context.Context, charts, origin string) error {
	operators := &corev1.PodList{}
	if err := w.Objects.List(ctx, operators, client.InNamespace(platform), client.MatchingLabels{"app.kubernetes.io/name": "vignette-operator"}); err != nil {
		return err
	}
	if len(operators.Items) == 0 {
		return fmt.Errorf("namespace %s has no operator: install the platform", platform)
	}
	registry, tag, _ := strings.Cut(operators.Items[0].Spec.Containers[0].Image, "/operator:")
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: consoleNamespace, Name: "login"}, StringData: map[string]string{"clientSecret": ClientSecret}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: consoleNamespace, Name: "issuer"}, Data: map[string]string{"ca.crt": string(w.Provider.Authority.PEM())}},
	} {
		if err := w.Objects.Create(ctx, object); err != nil {
			return err
		}
	}
	err := w.applyChart(ctx, consoleNamespace, []string{filepath.Join(charts, "vignette"), "--show-only", "templates/console.yaml", "-n", platform,
		"--set", "images.registry=" + registry, "--set-string", "images.tag=" + tag, "--set", "console.enabled=true", "--set", "console.origin=" + origin,
		"--set", "console.oidc.issuer=" + w.Provider.Issuer, "--set", "console.oidc.clientID=" + ClientID,
		"--set", "console.oidc.clientSecret=login", "--set", "console.oidc.caConfigMap=issuer"})
	if err != nil {
		return err
	}
	return w.waitForConsole(ctx)
}

func (w *World) waitForConsole(ctx context.Context) error {
	key := client.ObjectKey{Namespace: consoleNamespace, Name: "vignette-console"}
	err := wait.PollUntilContextTimeout(ctx, clusterPoll, goneTimeout, true, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := w.Objects.List(ctx, pods, client.InNamespace(consoleNamespace), client.MatchingLabels{"app.kubernetes.io/name": key.Name})
		return len(pods.Items) == 1 && isReady(&pods.Items[0]), err
	})
	if err != nil {
		return fmt.Errorf("the console in namespace %s is not ready: %w", consoleNamespace, err)
	}
	service := &corev1.Service{}
	if err := w.Objects.Get(ctx, key, service); err != nil {
		return err
	}
	w.ConsoleURL = &url.URL{Scheme: "http", Host: service.Spec.ClusterIP}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// startProvider on an address, for a console with an origin.
func (w *World) startProvider(address, origin string) (err error) {
	w.Provider, err = testoidc.Start(testoidc.Config{Listen: net.JoinHostPort(address, "0"), ClientID: ClientID, ClientSecret: ClientSecret, RedirectURI: origin + CallbackPath,
		Users: Users(), Lifetime: time.Hour})
	if err == nil {
		w.ends = append(w.ends, w.Provider.Close)
	}
	return err
}
