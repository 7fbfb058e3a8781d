// Package metricreaders protects metrics of all teams: Kubernetes decides who may read them.
package metricreaders

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Path of the metrics, and of the right that readers need.
const Path = "/metrics"

const (
	// An answer of the API server is kept this long.
	allowedLifetime = time.Minute
	refusedLifetime = 10 * time.Second
	// readerLifetime is how long a reader's token needs no room of reviewsPerSecond.
	readerLifetime = time.Hour
	// maxReaders that are remembered, and reviewsPerSecond of other tokens from one address: limits for floods of tokens.
	maxReaders       = 1000
	reviewsPerSecond = 5
	reviewTimeout    = 3 * time.Second
)

// Readers have a bearer token of the cluster and the right to get Path. (controller-runtime's filter does the same with all of
// k8s.io/apiserver, which is three times the size of radiod.)
type Readers struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	log    *slog.Logger
	clock  clock.PassiveClock
	// limits by address.
	limits *cache.LRUExpireCache
	// readers' tokens by their hashes, of answers or before. Refusals do not displace them.
	readers *cache.LRUExpireCache
	// answers are HTTP statuses by the tokens' hashes, http.StatusOK for readers.
	answers *cache.LRUExpireCache
}

// New uses the API server of the configuration.
func New(config *rest.Config, log *slog.Logger) (*Readers, error) {
	authentication, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return newReaders(authentication.TokenReviews(), authorization.SubjectAccessReviews(), log, clock.RealClock{}), nil
}

func newReaders(tokens authenticationclient.TokenReviewInterface, access authorizationclient.SubjectAccessReviewInterface, log *slog.Logger, now clock.PassiveClock) *Readers {
	return &Readers{tokens: tokens, access: access, log: log, clock: now, limits: cache.NewLRUExpireCacheWithClock(maxReaders, now),
		readers: cache.NewLRUExpireCacheWithClock(maxReaders, now), answers: cache.NewLRUExpireCacheWithClock(maxReaders, now)}
}

// Only passes on the requests of readers.
func (r *Readers) Only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		token, bearer := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
		if !bearer || token == "" {
			http.Error(w, "the metrics need a bearer token of the cluster, with the right to get "+Path, http.StatusUnauthorized)
			return
		}
		if status := r.status(request.Context(), token, request.RemoteAddr); status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, request)
	})
}

// mayReview reports whether an address may have another token reviewed now.
func (r *Readers) mayReview(remote string) bool {
	host, _, _ := net.SplitHostPort(remote)
	limit, found := r.limits.Get(host)
	if !found {
		limit = rate.NewLimiter(reviewsPerSecond, reviewsPerSecond)
		r.limits.Add(host, limit, readerLifetime)
	}
	return limit.(*rate.Limiter).AllowN(r.clock.Now(), 1)
}

func (r *Readers) status(ctx context.Context, token, remote string) int {
	key := sha256.Sum256([]byte(token))
	if known, found := r.answers.Get(key); found {
		return known.(int)
	}
	if _, isReader := r.readers.Get(key); !isReader && !r.mayReview(remote) {
		return http.StatusTooManyRequests
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	status, err := r.review(ctx, token)
	if err != nil {
		r.log.Warn("a reader of the metrics could not be checked", "error", err)
		return http.StatusServiceUnavailable
	}
	lifetime := refusedLifetime
	if status == http.StatusOK {
		lifetime = allowedLifetime
		r.readers.Add(key, true, readerLifetime)
	} else {
		r.readers.Remove(key)
	}
	r.answers.Add(key, status, lifetime)
	return status
}

// review a token with the API server.
func (r *Readers) review(ctx context.Context, token string) (status int, err error) {
	who, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: Path, Verb: "get"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !may.Status.Allowed || may.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
