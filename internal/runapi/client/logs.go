package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"vignette.dev/vignette/internal/runapi"
)

// LogPart is a piece of one of an app's logs.
type LogPart struct {
	File string
	// Offset of Content in the log, bytes.
	Offset  int64
	Content []byte
}

// LogResult is the result of a LogPart.
type LogResult struct {
	// Size is the archived size of the log, bytes, if there is no error.
	Size int64
	// Err of this part is an *Error, like that of a separate request. If the offset is not the archived size, it is a conflict
	// with that Size.
	Err error
}

// AppendLogs archives parts of the logs of the calling pod's app, up to runapi.MaxLogParts, and returns the results in their order.
// An error concerns all parts; some may be archived nevertheless. The caller may reuse the contents afterwards.
func (c *Client) AppendLogs(ctx context.Context, app string, parts []LogPart) ([]LogResult, error) {
	body, err := newLogBody(parts)
	if err != nil {
		return nil, err
	}
	defer body.release()
	response, err := c.do(ctx, http.MethodPost, "/v1/agent/logs/"+url.PathEscape(app), nil, body, "application/octet-stream")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answers []runapi.LogAnswer
	if err := decode(response, &answers); err != nil {
		return nil, err
	}
	if len(answers) != len(parts) {
		return nil, fmt.Errorf("answer of %s: it is for %d parts, want %d", response.Request.URL.Path, len(answers), len(parts))
	}
	appended := make([]LogResult, len(parts))
	for i, answer := range answers {
		switch {
		case answer.Status != http.StatusOK:
			appended[i].Err = &Error{Status: answer.Status, Message: answer.Error, Size: answer.Size}
		case answer.Size == nil:
			appended[i].Err = fmt.Errorf("answer of %s: log %s has no size", response.Request.URL.Path, parts[i].File)
		default:
			appended[i].Size = *answer.Size
		}
	}
	return appended, nil
}

// logBody sends the parts without copying their contents.
type logBody struct {
	bytes int64

	mu    sync.Mutex
	parts io.Reader
}

func newLogBody(parts []LogPart) (*logBody, error) {
	var readers []io.Reader
	body := &logBody{}
	for _, part := range parts {
		sum := sha256.Sum256(part.Content)
		header, err := json.Marshal(runapi.LogPart{File: part.File, Offset: part.Offset, Bytes: int64(len(part.Content)), SHA256: hex.EncodeToString(sum[:])})
		if err != nil {
			return nil, err
		}
		header = append(header, '\n')
		readers = append(readers, bytes.NewReader(header), bytes.NewReader(part.Content))
		body.bytes += int64(len(header) + len(part.Content))
	}
	body.parts = io.MultiReader(readers...)
	return body, nil
}

// Read fills p, as each read becomes a packet.
func (b *logBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := io.ReadFull(b.parts, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}

// release ends the use of the contents: after a failure the connection may read on for a while, when the caller has reused them.
func (b *logBody) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts = releasedBody{}
}

type releasedBody struct{}

func (releasedBody) Read([]byte) (int, error) { return 0, errors.New("the request is over") }
