package archive

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

// pausedReader gives its content, and calls during before its end.
type pausedReader struct {
	content io.Reader
	during  func()
}

func (r *pausedReader) Read(p []byte) (int, error) {
	n, err := r.content.Read(p)
	if err == io.EOF && r.during != nil {
		r.during()
		r.during = nil
	}
	return n, err
}

func TestResultsThatAreWrittenAtOnceShareTheirQuota(t *testing.T) {
	run := openRun(t, t.TempDir(), 10)
	put := func(p, content string, during func()) error {
		_, err := run.ReplaceResult(p, &pausedReader{strings.NewReader(content), during})
		return err
	}
	if err := put("results/a", "123456", func() {
		if err := put("results/b", "12345", nil); !errors.Is(err, ErrQuota) {
			t.Errorf("5 bytes beside 6 of 10: %v, want them refused", err)
		}
		if err := put("results/b", "1234", nil); err != nil {
			t.Errorf("4 bytes beside 6 of 10: %v", err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := put("results/a", "12345678", nil); !errors.Is(err, ErrQuota) {
		t.Errorf("8 bytes beside 4 of 10: %v, want them refused", err)
	}
	if err := put("results/a", "654321", nil); err != nil {
		t.Errorf("6 bytes in place of 6: %v", err)
	}
	if run.resultBytes != 10 || run.recordBytes.Load() != 10 || run.team.used.Load() != 10 {
		t.Errorf("%d, %d and %d bytes are counted, want 10", run.resultBytes, run.recordBytes.Load(), run.team.used.Load())
	}
}

func TestLargeResultsNeedRoomOfTheTeam(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	run.team.quota = 1 << 20
	put := func(p string, bytesOf int) error {
		_, err := run.ReplaceResult(p, bytes.NewReader(make([]byte, bytesOf)))
		return err
	}
	if err := put("results/report.html", freeResultBytes); err != nil {
		t.Errorf("the first bytes: %v, want them taken", err)
	}
	if err := put("results/messages.csv", 1); !errors.Is(err, ErrTeamQuota) {
		t.Errorf("one byte more: %v, want it refused", err)
	}
	if run.team.used.Load() != freeResultBytes {
		t.Errorf("the team has %d bytes, want %d", run.team.used.Load(), freeResultBytes)
	}
}

func TestResultsOfARunAreLimitedInNumber(t *testing.T) {
	run := openRun(t, t.TempDir(), 0)
	run.maxResults = 2
	for _, c := range []struct {
		path    string
		content io.Reader
		refused bool
	}{
		{"results/a", errorReader{}, true}, {"results/a", strings.NewReader(""), false}, {"results/b", strings.NewReader(""), false},
		{"results/c", strings.NewReader(""), true}, {"results/b", strings.NewReader("x"), false},
	} {
		if _, err := run.ReplaceResult(c.path, c.content); (err != nil) != c.refused {
			t.Errorf("%s: %v, want it refused: %v", c.path, err, c.refused)
		}
	}
}

func TestFilesThatAreReplacedAtTheSameTimeCountOnce(t *testing.T) {
	r := openRun(t, t.TempDir(), 0)
	for i := range 200 {
		var both sync.WaitGroup
		for range 4 {
			both.Go(func() {
				if _, err := r.ReplaceResult("results/x", bytes.NewReader(make([]byte, i))); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	files, err := r.Files()
	if err != nil || len(files) != 1 || files[0].Size != r.Size() {
		t.Errorf("files %+v, %v; %d bytes are counted", files, err, r.Size())
	}
}
