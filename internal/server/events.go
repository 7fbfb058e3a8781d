package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// maxEvents of a run that are kept, about 10 MB. Later ones are a gap.
	maxEvents = 20000
	// maxEventsBytes of one request: Kubernetes limits a message to 1 kB.
	maxEventsBytes = runapi.MaxEvents * (4 << 10)
)

func (s *Server) postEvents(w http.ResponseWriter, r *http.Request, who Identity) error {
	if !s.config.Policy.operator(who) {
		return notPermitted(who, "writing events")
	}
	run, err := s.find(r, who)
	if err != nil {
		return err
	}
	var events []runapi.KubernetesEvent
	if err := s.readJSON(w, r, maxEventsBytes, &events); err != nil {
		return err
	}
	if len(events) > runapi.MaxEvents {
		return statusErrorf(http.StatusRequestEntityTooLarge, "%d events: want at most %d in one request", len(events), runapi.MaxEvents)
	}
	for i, event := range events {
		if event.UID == "" || event.Reason == "" || event.Count < 1 || event.TimeNanoseconds <= 0 {
			return statusErrorf(http.StatusBadRequest, "event %d has uid %q, reason %q, count %d, ts %d: want all of them, the count 1 or more",
				i, event.UID, event.Reason, event.Count, event.TimeNanoseconds)
		}
	}
	if len(events) == 0 {
		run.countEventRound()
	}
	if err := s.addEvents(run, events); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// countEventRound notes that the operator has sent every event that it knew of.
func (r *run) countEventRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.eventRounds++
	r.reportChanged.notify()
}

// resetEventRounds at the beginning of a seal.
func (r *run) resetEventRounds() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.eventRounds = 0
}

// eventsComplete reports whether the archive has all events that the operator knew of when the seal began.
// The first round after that may have begun before, so two are needed. A failed run that is not collected waits for none.
func (r *run) eventsComplete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Plan.Phase != v1alpha1.PhaseCollecting || r.eventRounds >= 2
}

// addEvents archives new events in order of time. The tally has read what a killed server archived of a request, so that
// those events are not new.
func (s *Server) addEvents(run *run, events []runapi.KubernetesEvent) error {
	run.eventsMu.Lock()
	defer run.eventsMu.Unlock()
	events = slices.SortedStableFunc(slices.Values(events), func(a, b runapi.KubernetesEvent) int {
		return cmp.Compare(a.TimeNanoseconds, b.TimeNanoseconds)
	})
	known := run.tally.archivedEvents()
	var lines bytes.Buffer
	if known.torn {
		lines.WriteByte('\n') // ends an event that a killed server wrote in part
	}
	encoder := json.NewEncoder(&lines)
	added, beyond := 0, false
	fresh := map[string]int32{}
	for _, event := range events {
		if event.Count <= max(known.countOf(event.UID), fresh[event.UID]) {
			continue
		}
		if known.lines+added >= run.maxEvents {
			beyond = true
			break
		}
		if err := encoder.Encode(event); err != nil {
			return err
		}
		fresh[event.UID] = event.Count
		added++
	}
	if added > 0 {
		if _, err := run.files.Append(archive.EventsFile, known.bytes, lines.Bytes()); err != nil {
			return s.recordRefusal(run, archive.EventsFile, err)
		}
		s.metrics.bytes.WithLabelValues("event").Add(float64(lines.Len()))
	}
	if beyond {
		return run.recordRefused(archive.EventsFile, fmt.Sprintf("the run has %d events of Kubernetes, and no more are kept", run.maxEvents))
	}
	if added > 0 {
		return run.clearRefused(archive.EventsFile)
	}
	return nil
}

// archivedEvents describes the events of a run in the archive.
type archivedEvents struct {
	countOf func(uid string) int32
	lines   int
	bytes   int64
	torn    bool
}

// archivedEvents returns the present state, while nobody appends.
func (t *tally) archivedEvents() archivedEvents {
	t.mu.Lock()
	defer t.mu.Unlock()
	return archivedEvents{lines: t.eventLines, bytes: t.eventBytes, torn: len(t.partial[archive.EventsFile]) > 0, countOf: func(uid string) int32 {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.events[uid].Count
	}}
}

// countEvent counts a line of the events; the lock is held.
func (t *tally) countEvent(line []byte) {
	t.eventLines++
	var event runapi.KubernetesEvent
	if json.Unmarshal(line, &event) != nil || event.UID == "" {
		return
	}
	before, known := t.events[event.UID]
	if known && before.Count >= event.Count {
		return
	}
	seen := seenEvent{Count: event.Count}
	if event.Type == "Warning" && event.Node != "" {
		seen.warning = &warning{node: event.Node, reason: event.Reason, message: event.Message, from: event.TimeNanoseconds, to: event.TimeNanoseconds, count: event.Count}
		if before.warning != nil {
			seen.warning.from = before.warning.from
		}
	}
	t.events[event.UID] = seen
}

// seenEvent is what memory keeps of an event.
type seenEvent struct {
	Count   int32
	warning *warning
}

// warning about a node's pod, with its first and last time.
type warning struct {
	node, reason, message string
	from, to              int64
	count                 int32
}

// warnings about nodes' pods, in order of time.
func (t *tally) warnings() (found []warning) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, event := range t.events {
		if event.warning != nil {
			found = append(found, *event.warning)
		}
	}
	sort.Slice(found, func(i, j int) bool {
		a, b := found[i], found[j]
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.node, b.node), cmp.Compare(a.reason, b.reason), cmp.Compare(a.message, b.message)) < 0
	})
	return found
}

// events adds gaps for warnings about nodes' pods during the measurement, and for missing events.
// A problem before T0 was overcome, or there was no T0; after the end pods are deleted.
func (g *gapFinder) events(warnings []warning, settled bool) {
	if g.plan.T0 == nil {
		return
	}
	if _, archived := g.logs[archive.EventsFile]; !archived {
		g.add(runapi.Gap{What: "Kubernetes events", Reason: "the operator shipped none"})
	} else if !settled {
		g.add(runapi.Gap{What: "Kubernetes events", Reason: "the operator did not say before the seal that it had shipped all: the last ones may be missing"})
	}
	end, ended := measureEnd(g.plan)
	// Most reporters cut times to whole seconds: an event in T0's second counts.
	begin := g.plan.T0.Truncate(time.Second).UnixNano()
	for _, w := range warnings {
		if w.to < begin || ended && w.from > end {
			continue
		}
		gap := runapi.Gap{What: "Kubernetes event " + w.reason, Node: w.node, FromSeconds: g.secondsAfterT0(time.Unix(0, max(w.from, g.plan.T0.UnixNano()))), Reason: w.message}
		gap.ToSeconds = g.secondsAfterT0(time.Unix(0, max(w.to, g.plan.T0.UnixNano())))
		if w.count > 1 {
			gap.Reason = fmt.Sprintf("%s (%d times)", w.message, w.count)
		}
		g.add(gap)
	}
}
