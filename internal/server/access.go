package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"vignette.dev/vignette/internal/runapi"
)

// Verbs on the archive of a namespace, in RBAC's words: read, store compiled scenarios, delete runs.
const (
	verbRead   = "get"
	verbStore  = "update"
	verbDelete = "delete"
)

// Authorizer decides what users may do with the archive of a namespace. An empty namespace stands for all.
// An error means that the decision could not be made.
type Authorizer interface {
	Authorize(ctx context.Context, who Identity, verb, namespace string) (bool, error)
}

// AccessReviewer asks the API server about the resource archives/proxy of group results.vignette.dev. (k8s.io/apiserver's authorizer
// would bring 213 packages more into the server, among them CEL and gRPC.)
type AccessReviewer struct {
	Reviews authorizationclient.SubjectAccessReviewInterface
}

// Authorize implements Authorizer.
func (a AccessReviewer) Authorize(ctx context.Context, who Identity, verb, namespace string) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(who.Extra))
	for key, values := range who.Extra {
		extra[key] = values
	}
	answer, err := a.Reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Username, Groups: who.Groups, UID: who.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: runapi.ArchiveGroup, Version: runapi.ArchiveVersion,
			Resource: runapi.ArchiveResource, Subresource: runapi.ArchiveSubresource, Name: runapi.DefaultArchive,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("subject access review: %w", err)
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}

const (
	// An answer is kept this long. A right that is withdrawn ends after allowedLifetime, a new one counts after refusedLifetime.
	allowedLifetime = 10 * time.Second
	refusedLifetime = 2 * time.Second
)

// accessCache remembers an Authorizer's answers.
type accessCache struct {
	authorizer Authorizer
	answers    *cache.LRUExpireCache
}

func newAccessCache(of Authorizer, now func() time.Time) *accessCache {
	return &accessCache{authorizer: of, answers: cache.NewLRUExpireCacheWithClock(maxCachedAnswers, clockFunc(now))}
}

// Authorize implements Authorizer. Without an Authorizer, users may do nothing.
func (d *accessCache) Authorize(ctx context.Context, who Identity, verb, namespace string) (bool, error) {
	if d.authorizer == nil {
		return false, nil
	}
	text, err := json.Marshal([]any{who, verb, namespace})
	if err != nil {
		return false, err
	}
	key := sha256.Sum256(text)
	if known, ok := d.answers.Get(key); ok {
		return known.(bool), nil
	}
	allowed, err := d.authorizer.Authorize(ctx, who, verb, namespace)
	if err != nil {
		return false, err
	}
	lifetime := refusedLifetime
	if allowed {
		lifetime = allowedLifetime
	}
	d.answers.Add(key, allowed, lifetime)
	return allowed, nil
}

// permission decides whether a user may do something in a namespace.
type permission func(ctx context.Context, who Identity, namespace string) (bool, error)

// byPolicy is the permission of those whom the Policy names.
func byPolicy(may func(Identity, string) bool) permission {
	return func(_ context.Context, who Identity, namespace string) (bool, error) { return may(who, namespace), nil }
}

// mayRead allows the platform, the namespace's workflow, and those whom Kubernetes allows.
func (s *Server) mayRead(ctx context.Context, who Identity, namespace string) (bool, error) {
	if s.config.Policy.administrator(who) || s.config.Policy.workflow(who, namespace) {
		return true, nil
	}
	return s.kubernetesAllows(ctx, who, verbRead, namespace)
}

func (s *Server) mayDelete(ctx context.Context, who Identity, namespace string) (bool, error) {
	if s.config.Policy.administrator(who) {
		return true, nil
	}
	return s.kubernetesAllows(ctx, who, verbDelete, namespace)
}

// mayReadScenarios allows radiod and the operator, and users as for runs.
// A digest reveals nothing, and only readers of the Scenario know it.
func (s *Server) mayReadScenarios(ctx context.Context, who Identity, namespace string) (bool, error) {
	if s.config.Policy.radiod(who) {
		return true, nil
	}
	return s.mayRead(ctx, who, namespace)
}

func (s *Server) mayStoreScenarios(ctx context.Context, who Identity, namespace string) (bool, error) {
	if s.config.Policy.administrator(who) {
		return true, nil
	}
	if !s.config.Policy.ScenarioUploads {
		return false, nil
	}
	return s.kubernetesAllows(ctx, who, verbStore, namespace)
}

func (s *Server) kubernetesAllows(ctx context.Context, who Identity, verb, namespace string) (bool, error) {
	if who.Anonymous() {
		return false, nil
	}
	allowed, err := s.access.Authorize(ctx, who, verb, namespace)
	if err != nil {
		s.config.Log.Error("a user's rights could not be checked", "user", who.Username, "error", err)
		return false, statusErrorf(http.StatusServiceUnavailable, "the rights of %s could not be checked: try again", who.Username)
	}
	return allowed, nil
}

// requirePermission returns an error if the permission is refused.
func requirePermission(ctx context.Context, who Identity, namespace, what string, may permission) error {
	allowed, err := may(ctx, who, namespace)
	if err == nil && !allowed {
		err = notPermitted(who, what)
	}
	return err
}

// readableNamespaces returns those of the given namespaces that a user may read.
func (s *Server) readableNamespaces(ctx context.Context, who Identity, namespaces map[string]bool) (map[string]bool, error) {
	all, err := s.mayRead(ctx, who, "")
	if err != nil || all {
		return namespaces, err
	}
	may := map[string]bool{}
	for namespace := range namespaces {
		allowed, err := s.mayRead(ctx, who, namespace)
		if err != nil {
			return nil, err
		}
		if allowed {
			may[namespace] = true
		}
	}
	return may, nil
}
