package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

func TestEachPartOfARequestIsAnsweredSeparately(t *testing.T) {
	l := newLab(t, func(c *Config) { c.QuotaBytes = 20 })
	l.plan()
	l.log("nor", "bft", "short.log", "abc")
	parts := []client.LogPart{
		{File: "first.log", Content: []byte("first\n")},
		{File: "../x", Content: []byte("odd\n")},
		{File: "short.log", Offset: 7, Content: []byte("late\n")},
		{File: "large.log", Content: []byte("more than there is room for\n")},
		{File: "empty.log"},
		{File: "last.log", Content: []byte("last\n")},
	}
	appended, err := l.as("nor").AppendLogs(context.Background(), "bft", parts)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{http.StatusOK, http.StatusBadRequest, http.StatusConflict, http.StatusInsufficientStorage, http.StatusOK, http.StatusOK} {
		if got := status(appended[i].Err); got != want && (want != http.StatusOK || appended[i].Err != nil) {
			t.Errorf("%s: %v; want %d", parts[i].File, appended[i].Err, want)
		}
		if size := int64(len(parts[i].Content)); want == http.StatusOK && appended[i].Size != size {
			t.Errorf("%s: size %d; want %d", parts[i].File, appended[i].Size, size)
		}
	}
	if answer, ok := errors.AsType[*client.Error](appended[2].Err); !ok || answer.Size == nil || *answer.Size != 3 {
		t.Errorf("wrong offset: %v; want the size 3", appended[2].Err)
	}
	for _, file := range []string{"first", "last"} {
		if got := l.archived(file + ".log"); got != file+"\n" {
			t.Errorf("%s.log has %q; want %q", file, got, file+"\n")
		}
	}
}

// archived is the content of a log of nor's bft.
func (l *lab) archived(file string) string {
	l.t.Helper()
	f, err := l.as("admin").File(context.Background(), runUID, "logs/nor/bft/"+file)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// postRaw sends a body of logs as it is; with a length of -1 in chunks.
func (l *lab) postRaw(body string, length int64) int {
	l.t.Helper()
	request, err := http.NewRequest(http.MethodPost, l.http.URL+"/v1/agent/logs/bft", io.NopCloser(strings.NewReader(body)))
	if err != nil {
		l.t.Fatal(err)
	}
	request.ContentLength = length
	request.Header.Set("Authorization", "Bearer nor")
	response, err := l.http.Client().Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestATornRequestLeavesAPrefixThatTheNextOneContinues(t *testing.T) {
	l := newLab(t)
	l.plan()
	const one, two = "first line\n", "second line, of which a part arrives\n"
	whole := fmt.Sprintf(`{"file":"one.log","bytes":%d}`+"\n%s"+`{"file":"two.log","bytes":%d}`+"\n%s", len(one), one, len(two), two)
	if got := l.postRaw(whole[:len(whole)-10], -1); got != http.StatusBadRequest {
		t.Errorf("a torn body: %d; want 400", got)
	}
	if got := l.archived("one.log"); got != one {
		t.Errorf("the part before has %q; want %q", got, one)
	}
	if got := l.archived("two.log"); got != two[:len(two)-10] {
		t.Errorf("the torn part has %q; want what arrived of it", got)
	}
	if got := l.postRaw(whole, int64(len(whole))); got != http.StatusOK || l.archived("two.log") != two {
		t.Errorf("the same again: %d, archived %q; want all of it", got, l.archived("two.log"))
	}
}

func TestBodiesThatAreNotPartsAreRefused(t *testing.T) {
	l := newLab(t)
	l.plan()
	for name, body := range map[string]string{
		"no header":              "text\n",
		"a header without end":   `{"file":"a"}`,
		"an endless header":      `{"file":"` + strings.Repeat("a", 2*runapi.MaxLogPartHeaderBytes) + `"}` + "\n",
		"a negative offset":      `{"file":"a","offset":-1}` + "\n",
		"an offset past the end": `{"file":"a","offset":9223372036854775807,"bytes":1}` + "\nx",
		"negative bytes":         `{"file":"a","bytes":-1}` + "\n",
		"too many bytes":         `{"file":"a","bytes":9223372036854775807}` + "\nx",
		"too many parts":         strings.Repeat(`{"file":"a"}`+"\n", runapi.MaxLogParts+1),
	} {
		for _, length := range []int64{-1, int64(len(body))} {
			if got := l.postRaw(body, length); got != http.StatusBadRequest {
				t.Errorf("%s, content length %d: %d; want 400", name, length, got)
			}
		}
	}
}
