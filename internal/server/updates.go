package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"vignette.dev/vignette/internal/runapi"
)

// runUpdates remembers which runs changed: an agent's first report, an incident, a seal. A follower of it need not poll
// the state of each run.
type runUpdates struct {
	// epoch is unique to this start of the server: sequences of another epoch are not comparable.
	epoch string

	mu       sync.Mutex
	sequence int64
	// updatedAt is the sequence of each run's last update.
	updatedAt map[string]int64
	changed   broadcast
}

func newRunUpdates() *runUpdates {
	return &runUpdates{epoch: string(uuid.NewUUID()), updatedAt: map[string]int64{}}
}

// record that a run has changed.
func (n *runUpdates) record(uid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sequence++
	n.updatedAt[uid] = n.sequence
	n.changed.notify()
}

// forget a deleted run.
func (n *runUpdates) forget(uid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.updatedAt, uid)
}

// since returns what changed after a sequence, and a channel that closes at the next change.
func (n *runUpdates) since(sequence int64) (runapi.Updates, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := runapi.Updates{Epoch: n.epoch, Sequence: n.sequence, Runs: []string{}}
	for uid, at := range n.updatedAt {
		if at > sequence {
			found.Runs = append(found.Runs, uid)
		}
	}
	return found, n.changed.wait()
}

// getUpdates answers once a run changed after the operator's sequence, or empty after LongPoll. Another epoch is answered at once.
func (s *Server) getUpdates(w http.ResponseWriter, r *http.Request, who Identity) error {
	if !s.config.Policy.operator(who) {
		return notPermitted(who, "following the changes of all runs")
	}
	query := r.URL.Query()
	sequence, err := strconv.ParseInt(query.Get("since"), 10, 64)
	if err != nil {
		return statusErrorf(http.StatusBadRequest, "since %q: want the sequence of the previous answer, 0 for none", query.Get("since"))
	}
	deadline := time.NewTimer(s.config.LongPoll)
	defer deadline.Stop()
	for {
		found, more := s.runs.updates.since(sequence)
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
