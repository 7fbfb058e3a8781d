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
	// maxEvents of a run that are kept: some 10 MB. Later ones are a gap.
	maxEvents = 20000
	// maxEventsBytes of one request: Kubernetes bounds a message to 1 kB.
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

// countEventRound: the operator has sent every event that it knew of.
func (r *run) countEventRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.eventRounds++
	r.reportChanged.notify()
}

// resetEventRounds of Kubernetes that the operator knows of from now on.
func (r *run) resetEventRounds() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.eventRounds = 0
}

// eventsComplete tells that the archive has what the operator knew of when the seal began: the first round that is told may have begun before.
// Of a run that nobody collects, as it failed, nothing is waited for.
func (r *run) eventsComplete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Plan.Phase != v1alpha1.PhaseCollecting || r.eventRounds >= 2
}

// addEvents archives those events that are new, in order of their times. What a killed server had archived of a request counts as
// well: the tally has read it again.
func (s *Server) addEvents(run *run, events []runapi.KubernetesEvent) error {
	run.eventsMu.Lock()
	defer run.eventsMu.Unlock()
	events = slices.SortedStableFunc(slices.Values(events), func(a, b runapi.KubernetesEvent) int {
		return cmp.Compare(a.TimeNanoseconds, b.TimeNanoseconds)
	})
	known := run.tally.archivedEvents()
	var lines bytes.Buffer
	if known.torn {
		lines.WriteByte('\n') // what a killed server has not written to its end is no event
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

// archivedEvents is what the archive has of a run's events.
type archivedEvents struct {
	countOf func(uid string) int32
	lines   int
	bytes   int64
	torn    bool
}

// archivedEvents as it is now; while nobody appends.
func (t *tally) archivedEvents() archivedEvents {
	t.mu.Lock()
	defer t.mu.Unlock()
	return archivedEvents{lines: t.eventLines, bytes: t.eventBytes, torn: len(t.partial[archive.EventsFile]) > 0, countOf: func(uid string) int32 {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.events[uid].Count
	}}
}

// countEvent takes a line of the events; the lock is held.
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

// seenEvent is what is kept in memory of an event.
type seenEvent struct {
	Count   int32
	warning *warning
}

// warning of a node's pod, from its first to its last time.
type warning struct {
	node, reason, message string
	from, to              int64
	count                 int32
}

// warnings of nodes' pods, in order of their times.
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

// events names what Kubernetes warned of at nodes' pods while the run was measured, and that there are no events. What went wrong before
// T0 has healed, or there was no T0; and afterwards pods are deleted.
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
	// Most reporters give whole seconds, cut off: what came in the second of T0 counts.
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
