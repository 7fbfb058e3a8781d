package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// Identity is who sends a request. The zero Identity is anybody, without a token.
type Identity struct {
	// Username such as system:serviceaccount:NAMESPACE:NAME.
	Username string
	// UID, Groups and Extra as Kubernetes has them of the user.
	UID    string
	Groups []string
	Extra  map[string][]string
	// PodUID of the pod that the token was made for, if it was made for one.
	PodUID string
	// Scope is the namespace that the request is confined to; empty: to none.
	Scope string
}

// Anonymous tells that there was no token.
func (i Identity) Anonymous() bool { return i.Username == "" }

// Namespace of a service account, or nothing.
func (i Identity) Namespace() string {
	parts := strings.Split(i.Username, ":")
	if len(parts) == 4 && parts[0] == "system" && parts[1] == "serviceaccount" {
		return parts[2]
	}
	return ""
}

// ErrBadToken tells that a token is not valid here: the caller must bring another one.
var ErrBadToken = errors.New("the token is not valid for this server")

// Authenticator finds out who a token belongs to. An error other than ErrBadToken means that it could not be found out.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Identity, error)
}

// TokenReviewer asks the API server.
type TokenReviewer struct {
	Reviews authenticationclient.TokenReviewInterface
	// Audience that tokens must be made for.
	Audience string
}

// podUIDKey is where the API server says which pod a token is bound to.
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
	// goodFor and badFor bound how long an answer is believed.
	goodFor = time.Minute
	badFor  = 5 * time.Second
	// maxCached bounds the cache, whatever tokens are thrown at it.
	maxCached = 20000
)

// Cache remembers answers of an Authenticator by the tokens' hashes.
type Cache struct {
	of  Authenticator
	now func() time.Time

	mu      sync.Mutex
	answers map[[sha256.Size]byte]cached
	asking  map[[sha256.Size]byte]chan struct{}
}

type cached struct {
	identity Identity
	err      error
	until    time.Time
}

// NewCache puts a cache in front of an Authenticator.
func NewCache(of Authenticator, now func() time.Time) *Cache {
	return &Cache{of: of, now: now, answers: map[[sha256.Size]byte]cached{}, asking: map[[sha256.Size]byte]chan struct{}{}}
}

// Knows tells that the token's answer is remembered.
func (c *Cache) Knows(token string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer, known := c.answers[sha256.Sum256([]byte(token))]
	return known && c.now().Before(answer.until)
}

// Authenticate implements Authenticator. Of several requests with a token whose answer is too old, one asks.
func (c *Cache) Authenticate(ctx context.Context, token string) (Identity, error) {
	key := sha256.Sum256([]byte(token))
	for {
		c.mu.Lock()
		answer, known := c.answers[key]
		if known && c.now().Before(answer.until) {
			c.mu.Unlock()
			return answer.identity, answer.err
		}
		asked := c.asking[key]
		if asked == nil {
			c.asking[key] = make(chan struct{})
			c.mu.Unlock()
			return c.ask(ctx, key, token)
		}
		c.mu.Unlock()
		select {
		case <-asked: // an answer that could not be had is asked for again
		case <-ctx.Done():
			return Identity{}, ctx.Err()
		}
	}
}

func (c *Cache) ask(ctx context.Context, key [sha256.Size]byte, token string) (Identity, error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(c.asking[key])
		delete(c.asking, key)
	}()
	identity, err := c.of.Authenticate(ctx, token)
	lifetime := goodFor
	if err != nil {
		if !errors.Is(err, ErrBadToken) {
			return identity, err
		}
		lifetime = badFor
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answers) >= maxCached {
		clear(c.answers)
	}
	c.answers[key] = cached{identity, err, c.now().Add(lifetime)}
	return identity, err
}

// Policy says who may do what; other users may what Kubernetes lets them (Authorizer).
type Policy struct {
	// OperatorUser, RadiodUser and AdminUsers are user names, such as system:serviceaccount:vignette-system:vignette-operator.
	OperatorUser, RadiodUser string
	AdminUsers               []string
	// ScenarioUploads lets users whom Kubernetes lets store scenarios, up to half of their quota.
	ScenarioUploads bool
}

// workflowAccount is the service account of the workflow's pods in a run's namespace.
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
