package metricreaders

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// tokenReviews know the token of anybody whose name begins a token, as "anna's".
type tokenReviews struct {
	authenticationclient.TokenReviewInterface
	asked *int
	users map[string]string
	err   error
}

func (f tokenReviews) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	*f.asked++
	user, known := f.users[review.Spec.Token]
	review.Status = authenticationv1.TokenReviewStatus{Authenticated: known, User: authenticationv1.UserInfo{Username: user, Groups: []string{"g"}}}
	return review, f.err
}

// accessReviews let one user get the metrics.
type accessReviews struct {
	authorizationclient.SubjectAccessReviewInterface
	reader string
}

func (f accessReviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	what := review.Spec.NonResourceAttributes
	review.Status.Allowed = review.Spec.User == f.reader && len(review.Spec.Groups) == 1 && what.Path == "/metrics" && what.Verb == "get"
	return review, nil
}

func TestOnlyThoseWhomKubernetesAllowsReadMetrics(t *testing.T) {
	asked, now := 0, clocktesting.NewFakePassiveClock(time.Now())
	later := func(d time.Duration) { now.SetTime(now.Now().Add(d)) }
	reviews := tokenReviews{asked: &asked, users: map[string]string{"p": "prometheus", "t": "a tenant"}}
	r := newReaders(reviews, accessReviews{reader: "prometheus"}, slog.New(slog.NewTextHandler(io.Discard, nil)), now)
	guarded := r.Only(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "all teams' series") }))
	get := func(authorization string) int {
		request, answer := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody), httptest.NewRecorder()
		request.Header.Set("Authorization", authorization)
		guarded.ServeHTTP(answer, request)
		if (answer.Code == http.StatusOK) != (answer.Body.String() == "all teams' series") {
			t.Errorf("%q: status %d with %q", authorization, answer.Code, answer.Body)
		}
		return answer.Code
	}
	for _, c := range []struct {
		name, authorization string
		want                int
	}{
		{"no token", "", http.StatusUnauthorized},
		{"an empty token", "Bearer ", http.StatusUnauthorized},
		{"a password", "Basic cDpw", http.StatusUnauthorized},
		{"a token that nobody knows", "Bearer x", http.StatusUnauthorized},
		{"a tenant's", "Bearer t", http.StatusForbidden},
		{"Prometheus'", "Bearer p", http.StatusOK},
	} {
		if got := get(c.authorization); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if asked != 3 {
		t.Errorf("%d reviews, want one for each token", asked)
	}
	reviews.users["t"] = "prometheus" // the right is given
	reviews.err = errors.New("the API server is away")
	r.tokens = reviews
	if got := get("Bearer t"); got != http.StatusForbidden {
		t.Errorf("a refusal is not believed for a moment: %d", got)
	}
	later(refusedLifetime + 1)
	if got := get("Bearer t"); got != http.StatusServiceUnavailable {
		t.Errorf("with no API server: %d", got)
	}
	if got := get("Bearer p"); got != http.StatusOK {
		t.Errorf("who was let in a moment ago: %d", got)
	}
	reviews.err = nil
	r.tokens = reviews
	later(time.Second)
	if got := get("Bearer t"); got != http.StatusOK {
		t.Errorf("once the right counts: %d", got)
	}
	delete(reviews.users, "p")
	if later(allowedLifetime); get("Bearer p") != http.StatusUnauthorized {
		t.Error("a token that has become void is good for ever")
	}
	asked = 0
	for i := range 100 {
		_ = get("Bearer made up " + string(rune('a'+i)))
	}
	if asked > 2*reviewsPerSecond {
		t.Errorf("%d reviews of 100 tokens that somebody made up", asked)
	}
}

func TestMadeUpTokensKeepNoReaderOut(t *testing.T) {
	asked, now := 0, clocktesting.NewFakePassiveClock(time.Now())
	reviews := tokenReviews{asked: &asked, users: map[string]string{"p": "prometheus", "new": "prometheus"}}
	r := newReaders(reviews, accessReviews{reader: "prometheus"}, slog.New(slog.DiscardHandler), now)
	status := func(token, remote string) int { return r.status(t.Context(), token, remote) }
	if got := status("p", "10.0.0.1:1000"); got != http.StatusOK {
		t.Fatalf("a reader: %d", got)
	}
	now.SetTime(now.Now().Add(allowedLifetime + 1))
	for i := range 100 {
		_ = status("made up "+string(rune('a'+i)), "10.0.0.1:2000")
	}
	for what, c := range map[string]struct {
		token, remote string
		want          int
	}{
		"a known reader of the same address": {"p", "10.0.0.1:1000", http.StatusOK},
		"a new reader of another address":    {"new", "10.0.0.2:1000", http.StatusOK},
		"one more made up token":             {"x", "10.0.0.1:3000", http.StatusTooManyRequests},
	} {
		if got := status(c.token, c.remote); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}
