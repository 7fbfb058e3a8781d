package server

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/archive"
)

const (
	// maxFollowers of all files in total, and of one user.
	maxFollowers, maxFollowersOfUser = 256, 64
	// followPoll is how often a follower looks again without a signal: sealing sends none.
	followPoll = 500 * time.Millisecond
)

// followers counts them by user.
type followers struct {
	mu     sync.Mutex
	total  int
	byUser map[string]int
}

// add a follower, if there is room.
func (f *followers) add(user string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byUser[user] >= maxFollowersOfUser {
		return statusErrorf(http.StatusTooManyRequests, "you follow %d files, the most of one user: end some first", maxFollowersOfUser)
	}
	if f.total >= maxFollowers {
		return statusErrorf(http.StatusServiceUnavailable, "%d files are being followed, and no more can be", maxFollowers)
	}
	f.total++
	f.byUser[user]++
	return nil
}

func (f *followers) remove(user string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total--
	if f.byUser[user]--; f.byUser[user] == 0 {
		delete(f.byUser, user)
	}
}

// broadcast wakes all who wait. It costs nothing while nobody waits.
type broadcast struct {
	mu   sync.Mutex
	next chan struct{}
}

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *broadcast) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// follow sends a log from offset on as it grows. It ends when the run is sealed or deleted, when the capture has ended, or
// when the caller may not read it any more.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, who Identity, run *run, p string, offset int64) error {
	if !archive.IsLog(p) {
		return statusErrorf(http.StatusBadRequest, "%s does not grow: only logs, radio samples and captures can be followed", p)
	}
	if err := s.followers.add(who.Username); err != nil {
		return err
	}
	defer s.followers.remove(who.Username)
	f := &follower{w: w, control: http.NewResponseController(w), run: run, path: p, offset: offset}
	defer f.close()
	asked := s.config.Now()
	for {
		if now := s.config.Now(); now.Sub(asked) >= allowedLifetime {
			asked = now
			if err := s.checkStillReadable(r, who, run.files.Key().Namespace); err != nil {
				return f.abort(err)
			}
		}
		changed := run.growth.wait()
		// Read first: data from before the end must be sent.
		over := run.isSealed() || run.files.Closed() || run.captureEnded(p)
		if err := f.copy(); err != nil {
			return f.abort(err)
		}
		if over {
			if f.file == nil && !f.started {
				return statusErrorf(http.StatusNotFound, "run %s has no file %s and will get none", run.files.Key().UID, p)
			}
			return f.start()
		}
		if err := f.start(); err != nil {
			return f.abort(err)
		}
		select {
		case <-r.Context().Done():
			return f.abort(r.Context().Err())
		case <-changed:
		case <-time.After(followPoll):
		}
	}
}

// checkStillReadable returns an error if the token has become invalid or the right was withdrawn. A failed check is no refusal.
func (s *Server) checkStillReadable(r *http.Request, who Identity, namespace string) error {
	_, vouched := r.Context().Value(verifiedIdentityKey{}).(Identity)
	if token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer && !vouched {
		if _, err := s.auth.Authenticate(r.Context(), token); errors.Is(err, ErrBadToken) {
			return statusErrorf(http.StatusUnauthorized, "%v", err)
		}
	}
	if allowed, err := s.mayRead(r.Context(), who, namespace); err == nil && !allowed {
		return notPermitted(who, "reading this run")
	}
	return nil
}

// follower is one answer that continues.
type follower struct {
	w       http.ResponseWriter
	control *http.ResponseController
	run     *run
	path    string
	offset  int64
	file    *os.File
	started bool
}

// copy sends the data that is new.
func (f *follower) copy() error {
	if f.file == nil {
		file, err := f.run.files.Open(f.path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrClosed) || f.run.files.Closed() {
			return nil
		}
		if err != nil {
			return err
		}
		f.file = file
	}
	info, err := f.file.Stat()
	if err != nil || info.Size() <= f.offset { // most often: other logs of the run have grown
		return err
	}
	piece := make([]byte, min(pieceBytes, info.Size()-f.offset))
	for {
		n, err := f.file.ReadAt(piece, f.offset)
		if n > 0 {
			if err := f.write(piece[:n]); err != nil {
				return err
			}
			f.offset += int64(n)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (f *follower) write(piece []byte) error {
	if err := f.start(); err != nil {
		return err
	}
	return f.inTime(func() error {
		_, err := f.w.Write(piece)
		return err
	})
}

// start sends the header before there is data.
func (f *follower) start() error {
	if f.started {
		return nil
	}
	f.started = true
	setFileHeader(f.w.Header(), f.path)
	return f.inTime(func() error {
		f.w.WriteHeader(http.StatusOK)
		return nil
	})
}

// inTime sends something with a time limit. HTTP/2 would end the request at its deadline also while nothing is sent.
func (f *follower) inTime(send func() error) error {
	_ = f.control.SetWriteDeadline(time.Now().Add(pieceTimeout))
	defer func() { _ = f.control.SetWriteDeadline(time.Time{}) }()
	if err := send(); err != nil {
		return err
	}
	return f.control.Flush()
}

// abort ends an answer so that the client does not take this for the end of the file.
func (f *follower) abort(err error) error {
	if f.started {
		panic(http.ErrAbortHandler)
	}
	return err
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
}
