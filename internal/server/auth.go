package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// Identity is who sends a request. The zero Identity has no token.
type Identity struct {
	// Username such as system:serviceaccount:NAMESPACE:NAME.
	Username string
	// UID, Groups and Extra of the user, as in Kubernetes.
	UID    string
	Groups []string
	Extra  map[string][]string
	// PodUID of the pod that the token is bound to, if any.
	PodUID string
	// Scope is the namespace to which the request is confined; empty for no limit.
	Scope string
}

// Anonymous reports whether there was no token.
func (i Identity) Anonymous() bool { return i.Username == "" }

// Namespace of a service account; empty for other users.
func (i Identity) Namespace() string {
	parts := strings.Split(i.Username, ":")
	if len(parts) == 4 && parts[0] == "system" && parts[1] == "serviceaccount" {
		return parts[2]
	}
	return ""
}

// ErrBadToken means that a token is not valid here, and that the caller needs another one.
var ErrBadToken = errors.New("the token is not valid for this server")

// Authenticator identifies the owner of a token. An error other than ErrBadToken means that this failed.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Identity, error)
}

// TokenReviewer asks the API server. (k8s.io/apiserver's authenticator does not tell a void token from an API server that is away:
// callers get a new token for the one, and try again for the other.)
type TokenReviewer struct {
	Reviews authenticationclient.TokenReviewInterface
	// Audience that tokens must have.
	Audience string
}

// podUIDKey is where the API server names the pod that a token is bound to.
const podUIDKey = "authentication.kubernetes.io/pod-uid"

// Authenticate implements Authenticator.
func (t TokenReviewer) Authenticate(ctx context.Context, token string) (Identity, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{t.Audience}}}
	answer, err := t.Reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return Identity{}, fmt.Errorf("token review: %w", err)
	}
	status := answer.Status
	if !status.Authenticated || status.User.Username == "" {
		return Identity{}, fmt.Errorf("%w: %s", ErrBadToken, status.Error)
	}
	if !slices.Contains(status.Audiences, t.Audience) {
		return Identity{}, fmt.Errorf("%w: its audiences are %q, want %q", ErrBadToken, status.Audiences, t.Audience)
	}
	identity := Identity{Username: status.User.Username, UID: status.User.UID, Groups: status.User.Groups, Extra: map[string][]string{}}
	for key, values := range status.User.Extra {
		identity.Extra[key] = values
	}
	if uids := status.User.Extra[podUIDKey]; len(uids) == 1 {
		identity.PodUID = uids[0]
	}
	return identity, nil
}

const (
	// An answer is kept this long.
	validTokenLifetime   = time.Minute
	invalidTokenLifetime = 5 * time.Second
	// reviewTimeout for the API server's answer.
	reviewTimeout = 10 * time.Second
	// maxCachedAnswers bounds the cache, however many tokens arrive.
	maxCachedAnswers = 20000
)

// TokenCache remembers an Authenticator's answers by the tokens' hashes.
type TokenCache struct {
	authenticator Authenticator
	answers       *cache.LRUExpireCache
	inFlight      singleflight.Group
}

type tokenAnswer struct {
	identity Identity
	err      error
}

// clockFunc is the clock of a cache.
type clockFunc func() time.Time

func (f clockFunc) Now() time.Time { return f() }

// NewTokenCache puts a cache in front of an Authenticator.
func NewTokenCache(of Authenticator, now func() time.Time) *TokenCache {
	return &TokenCache{authenticator: of, answers: cache.NewLRUExpireCacheWithClock(maxCachedAnswers, clockFunc(now))}
}

// Cached reports whether the answer for a token is in the cache.
func (c *TokenCache) Cached(token string) bool {
	_, known := c.answers.Get(sha256.Sum256([]byte(token)))
	return known
}

// Authenticate implements Authenticator. Of concurrent requests with an expired token, one asks.
func (c *TokenCache) Authenticate(ctx context.Context, token string) (Identity, error) {
	key := sha256.Sum256([]byte(token))
	if known, ok := c.answers.Get(key); ok {
		return known.(tokenAnswer).identity, known.(tokenAnswer).err
	}
	// All waiting requests share the answer, so it is completed even if the first of them gives up.
	asked := c.inFlight.DoChan(string(key[:]), func() (any, error) {
		if known, ok := c.answers.Get(key); ok { // another request was faster
			return known.(tokenAnswer).identity, known.(tokenAnswer).err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		identity, err := c.authenticator.Authenticate(ctx, token)
		switch {
		case err == nil:
			c.answers.Add(key, tokenAnswer{identity, nil}, validTokenLifetime)
		case errors.Is(err, ErrBadToken):
			c.answers.Add(key, tokenAnswer{identity, err}, invalidTokenLifetime)
		}
		return identity, err
	})
	select {
	case result := <-asked:
		return result.Val.(Identity), result.Err
	case <-ctx.Done():
		return Identity{}, ctx.Err()
	}
}

// Policy says who may do what. Other users may do what Kubernetes allows (Authorizer).
type Policy struct {
	// OperatorUser, RadiodUser and AdminUsers are user names, such as system:serviceaccount:vignette-system:vignette-operator.
	OperatorUser, RadiodUser string
	AdminUsers               []string
	// ScenarioUploads allows users to store scenarios if Kubernetes does, up to half of the quota.
	ScenarioUploads bool
}

// workflowAccount is the service account of a workflow's pods, in the run's namespace.
const workflowAccount = "vignette-workflow"

func (p Policy) operator(who Identity) bool {
	return !who.Anonymous() && who.Username == p.OperatorUser
}

func (p Policy) radiod(who Identity) bool { return !who.Anonymous() && who.Username == p.RadiodUser }

func (p Policy) administrator(who Identity) bool {
	return p.operator(who) || (!who.Anonymous() && slices.Contains(p.AdminUsers, who.Username))
}

func (p Policy) workflow(who Identity, namespace string) bool {
	return who.Username == "system:serviceaccount:"+namespace+":"+workflowAccount
}
