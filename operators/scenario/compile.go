package scenario

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/digests"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// maxCompileTime is the maximum time of a compilation.
const maxCompileTime = 15 * time.Minute

// compileResult is the result of a compilation.
type compileResult struct {
	digest     string
	statistics *v1alpha1.ScenarioStatistics
	ready      metav1.Condition
	// retry is a temporary error, full one of them; at is when it came.
	retry error
	full  *fullError
	at    time.Time
}

// fullError says that the store has no room for a compiled scenario.
type fullError struct {
	digest string
	bytes  int64
}

func (f *fullError) Error() string {
	return fmt.Sprintf("the archive has no room for the %s of the compiled scenario: delete Scenarios and runs with scenarios that nobody needs, "+
		"or ask the administrator for a larger volume or server.scenarioQuota, of which a namespace has half", wording.Bytes(f.bytes))
}

// problem is an error in a scenario, with the reason of Ready.
type problem struct {
	reason string
	err    error
}

func (p *problem) Error() string { return p.err.Error() }

func (p *problem) Unwrap() error { return p.err }

// temporaryError marks errors of the API server and the store, after which the job is repeated.
type temporaryError struct{ error }

func (u temporaryError) Unwrap() error { return u.error }

// compile compiles a scenario and stores it, or fetches one that was compiled elsewhere.
func (r *Reconciler) compile(ctx context.Context, namespace string, spec v1alpha1.ScenarioSpec) compileResult {
	limited, cancel := context.WithTimeout(ctx, maxCompileTime)
	defer cancel()
	out, err := r.compileToFile(limited, namespace, spec)
	var (
		passing temporaryError
		known   *problem
		full    *fullError
		syntax  *scenario.SyntaxError
		large   *compile.TooLargeError
	)
	reason := ReasonInvalid
	switch {
	case err == nil:
		return out
	case errors.As(err, &full):
		return compileResult{retry: err, full: full, at: r.now(), ready: condition(metav1.ConditionFalse, ReasonStoreFull, err.Error())}
	case ctx.Err() != nil || errors.As(err, &passing):
		return compileResult{retry: err, at: r.now(), ready: condition(metav1.ConditionUnknown, ReasonStoreUnavailable, err.Error())}
	case limited.Err() != nil:
		reason, err = ReasonTooLarge, fmt.Errorf("compiling takes more than %s: compile it with \"vignette scenario push\"", wording.Time(maxCompileTime))
	case errors.As(err, &known):
		reason = known.reason
	case errors.As(err, &large):
		reason = ReasonTooLarge
	case errors.As(err, &syntax):
		reason = ReasonMalformed
	}
	return compileResult{ready: condition(metav1.ConditionFalse, reason, err.Error())}
}

// compileToFile compiles a scenario into a temporary file and stores it.
func (r *Reconciler) compileToFile(ctx context.Context, namespace string, spec v1alpha1.ScenarioSpec) (compileResult, error) {
	file, err := os.CreateTemp("", "scenario-*")
	if err != nil {
		return compileResult{}, temporaryError{err}
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return compileResult{}, temporaryError{err}
	}
	if spec.Compiled != "" {
		return r.fetch(ctx, namespace, &spec, file)
	}
	sources := &sources{live: r.Live, namespace: namespace}
	open := func(s v1alpha1.ScenarioSource) ([]byte, error) { return sources.open(ctx, s) }
	result, err := compile.Compile(ctx, spec, compile.Served(open), file)
	if err != nil {
		return compileResult{}, err
	}
	out := compileResult{digest: result.Digest, statistics: &result.Statistics, ready: ready(&result.Statistics, result.Warnings)}
	return out, r.store(ctx, namespace, result.Digest, file)
}

// store stores the scenario, unless the store has it already.
func (r *Reconciler) store(ctx context.Context, namespace, digest string, file *os.File) error {
	has, err := r.Store.HasScenarioFor(ctx, namespace, digest)
	if err != nil {
		return temporaryError{err}
	}
	if has {
		return nil
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return temporaryError{err}
	}
	room, err := r.Store.HasScenarioRoom(ctx, namespace, digest, size)
	if err != nil {
		return temporaryError{err}
	}
	if !room {
		return &fullError{digest, size}
	}
	err = r.Store.PutScenarioFor(ctx, namespace, digest, io.NopCloser(file))
	if runs.HasStatus(err, http.StatusInsufficientStorage) {
		return &fullError{digest, size}
	}
	if err != nil {
		return temporaryError{fmt.Errorf("storing the compiled scenario: %w", err)}
	}
	return nil
}

// fetch reads a scenario that was compiled elsewhere, for its statistics.
func (r *Reconciler) fetch(ctx context.Context, namespace string, spec *v1alpha1.ScenarioSpec, file *os.File) (compileResult, error) {
	digest := spec.Compiled
	has, err := r.Store.HasScenarioFor(ctx, namespace, digest)
	if err != nil {
		return compileResult{}, temporaryError{err}
	}
	if !has {
		return compileResult{}, &problem{ReasonNotInStore, fmt.Errorf("spec.compiled: the archive has no scenario %s: store it with \"vignette scenario push\"", digest)}
	}
	body, err := r.Store.Scenario(ctx, digest)
	if err != nil {
		return compileResult{}, temporaryError{err}
	}
	defer body.Close()
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, sum), body)
	if err != nil {
		return compileResult{}, temporaryError{err}
	}
	if has := digests.Of(sum); has != digest {
		return compileResult{}, temporaryError{fmt.Errorf("the store returned %s for %s", has, digest)}
	}
	s, err := scenario.Open(file, size)
	if err != nil {
		return compileResult{}, fmt.Errorf("spec.compiled: %w", err)
	}
	if err := compile.CheckCompiled(spec, s); err != nil {
		return compileResult{}, err
	}
	statistics := compile.Statistics(s)
	return compileResult{digest: digest, statistics: &statistics, ready: ready(&statistics, nil)}, nil
}

// sources reads a scenario's sources from ConfigMaps, of which it keeps only the last one.
type sources struct {
	live      client.Reader
	namespace string
	last      *corev1.ConfigMap
}

// open returns the content of a file without unpacking it.
func (s *sources) open(ctx context.Context, file v1alpha1.ScenarioSource) ([]byte, error) {
	if s.last == nil || s.last.Name != file.ConfigMap {
		configMap := &corev1.ConfigMap{}
		err := s.live.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: file.ConfigMap}, configMap)
		if apierrors.IsNotFound(err) {
			return nil, &problem{ReasonConfigMapNotFound, fmt.Errorf("there is no ConfigMap %q in this namespace", file.ConfigMap)}
		}
		if err != nil {
			return nil, temporaryError{err}
		}
		s.last = configMap
	}
	content, found := s.last.BinaryData[file.Key]
	if text, inText := s.last.Data[file.Key]; inText {
		content, found = []byte(text), true
	}
	if !found {
		return nil, &problem{ReasonKeyNotFound, fmt.Errorf("ConfigMap %q has no key %q", file.ConfigMap, file.Key)}
	}
	return content, nil
}
