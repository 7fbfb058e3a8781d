package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"path"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
)

// postLogs archives parts of an app's logs as they arrive.
func (s *Server) postLogs(w http.ResponseWriter, r *http.Request, who Identity) error {
	run, node, err := s.agentOf(who)
	if err != nil {
		return err
	}
	app := r.PathValue("app")
	if _, known, _ := run.agentPlan(runapi.Target{Node: node, App: app}); !known {
		return statusErrorf(http.StatusForbidden, "node %s of this run has no app %q", node, app)
	}
	run.touch()
	body := &deadlineBody{body: http.MaxBytesReader(w, r.Body, maxAppendBytes), control: http.NewResponseController(w)}
	size := int64(runapi.MaxCheckedBytes)
	if r.ContentLength >= 0 {
		size = min(size, max(r.ContentLength+bytes.MinRead, runapi.MaxLogPartHeaderBytes))
	}
	parts := &logParts{server: s, run: run, dir: path.Join(archive.LogsDir, node, app), in: bufio.NewReaderSize(body, int(size))}
	answers, err := parts.archive()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answers)
}

// logParts is the body of one request; only in's buffer of it is in memory.
type logParts struct {
	server *Server
	run    *run
	dir    string
	in     *bufio.Reader
}

// archive stores part after part. An error is that of the whole request; earlier parts stay archived.
func (p *logParts) archive() ([]runapi.LogAnswer, error) {
	answers := []runapi.LogAnswer{}
	for {
		part, err := p.header(len(answers) + 1)
		if err == io.EOF {
			return answers, nil
		}
		if err != nil {
			return nil, err
		}
		if len(answers) == runapi.MaxLogParts {
			return nil, statusErrorf(http.StatusBadRequest, "the request has more than %d parts", runapi.MaxLogParts)
		}
		answer, err := p.part(part)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
}

// header reads what precedes the bytes of part number i; io.EOF is the end of the body.
func (p *logParts) header(i int) (part runapi.LogPart, err error) {
	line, err := p.in.ReadSlice('\n')
	switch {
	case err == io.EOF && len(line) == 0:
		return part, err
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, bufio.ErrBufferFull), err == nil && len(line) > runapi.MaxLogPartHeaderBytes:
		return part, statusErrorf(http.StatusBadRequest, "part %d does not begin with a line of up to %d bytes", i, runapi.MaxLogPartHeaderBytes)
	case err != nil:
		return part, fmt.Errorf("request: %w", err)
	}
	if err := json.Unmarshal(line, &part); err != nil {
		return part, statusErrorf(http.StatusBadRequest, "part %d does not begin with the expected JSON: %v", i, err)
	}
	if part.Offset < 0 || part.Offset > math.MaxInt64-maxAppendBytes {
		return part, statusErrorf(http.StatusBadRequest, "part %d: offset is %d, want the number of bytes before the part's", i, part.Offset)
	}
	if part.Bytes < 0 || part.Bytes > maxAppendBytes {
		return part, statusErrorf(http.StatusBadRequest, "part %d: bytes is %d, want 0 to %d", i, part.Bytes, maxAppendBytes)
	}
	if part.SHA256 != "" && part.Bytes > int64(p.in.Size()) {
		return part, statusErrorf(http.StatusBadRequest, "part %d: bytes is %d, want at most %d of a part with a digest", i, part.Bytes, p.in.Size())
	}
	return part, nil
}

// part archives one part piece by piece. A refused part is read to its end, as others follow. An error means that the body
// ended early.
func (p *logParts) part(part runapi.LogPart) (runapi.LogAnswer, error) {
	var size int64
	failed := p.validate(part)
	if failed == nil {
		failed = p.check(part)
	}
	for offset, rest := part.Offset, part.Bytes; ; {
		piece, broken := p.in.Peek(int(min(rest, int64(p.in.Size()))))
		if failed == nil {
			size, failed = p.append(part.File, offset, piece)
		}
		n, _ := p.in.Discard(len(piece)) // cannot fail: they have been read
		offset, rest = offset+int64(n), rest-int64(n)
		if broken == io.EOF || errors.Is(broken, io.ErrUnexpectedEOF) {
			return runapi.LogAnswer{}, statusErrorf(http.StatusBadRequest, "the body ends %d bytes before the end of a part of %s", rest, part.File)
		}
		if broken != nil {
			return runapi.LogAnswer{}, fmt.Errorf("request: %w", broken)
		}
		if rest == 0 {
			return p.answer(part, size, failed), nil
		}
	}
}

func (p *logParts) validate(part runapi.LogPart) error {
	if err := archive.ValidateFile(part.File); err != nil {
		return statusErrorf(http.StatusBadRequest, "%v", err)
	}
	return nil
}

// check compares a part with its digest before any of it is archived. A body that ends early is found later.
func (p *logParts) check(part runapi.LogPart) error {
	if part.SHA256 == "" {
		return nil
	}
	content, broken := p.in.Peek(int(part.Bytes))
	if broken == nil && digestMatches(part, content) {
		return nil
	}
	if broken != nil {
		return statusErrorf(http.StatusUnprocessableEntity, "the part of %s is incomplete", part.File)
	}
	return p.server.digestMismatch("the part of " + part.File)
}

func (p *logParts) append(file string, offset int64, piece []byte) (int64, error) {
	log := p.dir + "/" + file
	size, err := p.run.files.Append(log, offset, piece)
	if err != nil {
		return size, p.server.recordRefusal(p.run, log, err)
	}
	p.server.metrics.bytes.WithLabelValues("log").Add(float64(len(piece)))
	return size, p.run.clearRefused(log)
}

func (p *logParts) answer(part runapi.LogPart, size int64, failed error) runapi.LogAnswer {
	if failed == nil {
		return runapi.LogAnswer{Status: http.StatusOK, Size: &size}
	}
	why := classify(failed)
	if why.status >= http.StatusInternalServerError {
		p.server.config.Log.Error("a part of a log was not archived", "log", p.dir+"/"+part.File, "error", failed)
	}
	return runapi.LogAnswer{Status: why.status, Size: why.Size, Error: why.Problem.Error}
}
