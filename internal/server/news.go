package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"vignette.dev/vignette/internal/runapi"
)

// news tells which runs have something to say: what an agent reports for the first time, an incident, a seal. One who follows it need not ask
// for the state of each run again and again.
type news struct {
	// epoch is this life of the server: numbers of another one mean nothing.
	epoch string

	mu       sync.Mutex
	sequence int64
	// of is the sequence at which each run had news last.
	of  map[string]int64
	any broadcast
}

func newNews() *news {
	return &news{epoch: string(uuid.NewUUID()), of: map[string]int64{}, any: newBroadcast()}
}

// note that a run has news.
func (n *news) note(uid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sequence++
	n.of[uid] = n.sequence
	n.any.tell()
}

// forget a run that is deleted.
func (n *news) forget(uid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, uid)
}

// since gives what came after a sequence, and a channel that closes with the next news.
func (n *news) since(sequence int64) (runapi.News, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := runapi.News{Epoch: n.epoch, Sequence: n.sequence, Runs: []string{}}
	for uid, at := range n.of {
		if at > sequence {
			found.Runs = append(found.Runs, uid)
		}
	}
	return found, n.any.wait()
}

// getNews answers once there is news after the sequence that the operator knows, or after LongPoll with none. Who knows another epoch is answered at once.
func (s *Server) getNews(w http.ResponseWriter, r *http.Request, who Identity) error {
	if !s.config.Policy.operator(who) {
		return problem(http.StatusForbidden, "%s may not follow the news of all runs: only the operator may", who.Username)
	}
	query := r.URL.Query()
	sequence, err := strconv.ParseInt(query.Get("since"), 10, 64)
	if err != nil {
		return problem(http.StatusBadRequest, "since %q: want the sequence of the last answer, 0 for none", query.Get("since"))
	}
	deadline := time.NewTimer(s.config.LongPoll)
	defer deadline.Stop()
	for {
		found, more := s.runs.news.since(sequence)
		if len(found.Runs) > 0 || query.Get("epoch") != found.Epoch {
			return writeJSON(w, http.StatusOK, found)
		}
		select {
		case <-more:
		case <-deadline.C:
			return writeJSON(w, http.StatusOK, found)
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}
