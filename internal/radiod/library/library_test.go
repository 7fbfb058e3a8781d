package library

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/testtool"
)

func libraryOf(t *testing.T, directory string) *Library {
	t.Helper()
	l, err := Open(directory)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAScenarioIsFetchedOnceAndKeptForTheNextWorker(t *testing.T) {
	directory := t.TempDir()
	l := libraryOf(t, directory)
	digest, content := radiodtest.Losses(t, radiodtest.Loss{A: 1, B: 2, DB: 80}, radiodtest.Loss{A: 1, B: 3, DB: 80}, radiodtest.Loss{A: 2, B: 3, DB: 80})
	from := new(radiodtest.ScenarioStore).Put(digest, content)
	if _, err := l.Get(digest); err == nil {
		t.Fatal("a scenario that nobody has fetched is here")
	}
	if err := l.download(t.Context(), from, digest); err != nil {
		t.Fatal(err)
	}
	one, err := l.Get(digest)
	two, err2 := l.Get(digest)
	if err != nil || err2 != nil || one != two {
		t.Errorf("got %p, %p, %v, %v; want the same one twice", one, two, err, err2)
	}
	half := filepath.Join(l.directory, "fetching-1")
	if err := os.WriteFile(half, content[:10], 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := os.Stat(half); err == nil {
			t.Error("what a worker had fetched half when it died is still there")
		}
	}()
	if s, err := libraryOf(t, directory).Get(digest); err != nil || len(s.Platforms()) != 3 {
		t.Errorf("the next worker got %v; want the scenario with its 3 platforms", err)
	}
	if from.Asked() != 1 {
		t.Errorf("the server was asked %d times; want once", from.Asked())
	}
}

func TestAScenarioOfAnotherDigestIsRefused(t *testing.T) {
	l := libraryOf(t, t.TempDir())
	digest, content := radiodtest.Losses(t, radiodtest.Loss{A: 1, B: 2, DB: 80}, radiodtest.Loss{A: 1, B: 3, DB: 80}, radiodtest.Loss{A: 2, B: 3, DB: 80})
	from := new(radiodtest.ScenarioStore).Put(digest, append([]byte("x"), content...))
	err := l.download(t.Context(), from, digest)
	if err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("got %v; want an error that names the digest", err)
	}
	if files, _ := os.ReadDir(l.directory); len(files) != 0 {
		t.Errorf("files %v are left; want none", files)
	}
}

func TestWhatIsNoDigestIsNamed(t *testing.T) {
	l := libraryOf(t, t.TempDir())
	for _, text := range []string{"sha256:00", "../../etc/passwd", "sha256:" + strings.Repeat("g", 64)} {
		if _, err := l.Get(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v; want an error that names it", text, err)
		}
	}
}

func TestABrokenScenarioFileIsFetchedAgain(t *testing.T) {
	l := libraryOf(t, t.TempDir())
	digest, content := radiodtest.Losses(t, radiodtest.Loss{A: 1, B: 2, DB: 80}, radiodtest.Loss{A: 1, B: 3, DB: 80}, radiodtest.Loss{A: 2, B: 3, DB: 80})
	if err := os.WriteFile(l.path(digest), content[:len(content)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Get(digest); err == nil || !strings.Contains(err.Error(), "fetched again") {
		t.Errorf("got %v; want an error that says that it is fetched again", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go l.Fetch(ctx, new(radiodtest.ScenarioStore).Put(digest, content), func(string) {})
	testtool.Eventually(t, "the scenario is here", func() bool { _, err := l.Get(digest); return err == nil })
}

func TestFetchingGoesOnUntilTheServerAnswers(t *testing.T) {
	l := libraryOf(t, t.TempDir())
	digest, content := radiodtest.Losses(t, radiodtest.Loss{A: 1, B: 2, DB: 80}, radiodtest.Loss{A: 1, B: 3, DB: 80}, radiodtest.Loss{A: 2, B: 3, DB: 80})
	from := new(radiodtest.ScenarioStore).Put(digest, content)
	from.Fail(errors.New("connection refused"))
	arrived := make(chan error, 100)
	_, _ = l.Get(digest)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go l.Fetch(ctx, from, func(digest string) {
		_, err := l.Get(digest)
		arrived <- err
	})
	if err := <-arrived; err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v; want what the server said", err)
	}
	from.Fail(nil)
	for err := range arrived {
		if err == nil {
			return
		}
	}
}
