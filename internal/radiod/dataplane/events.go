package dataplane

import (
	"sync"
	"time"

	"vignette.dev/vignette/internal/bell"
)

// Event is what the worker has to know. One of Gone, Host, Network and Forgotten is set.
type Event struct {
	// Gone is a port whose interface the kernel has removed. It is to be detached.
	Gone PortID
	// Host is lost, or reachable again, at At. Nothing came from it since Since; both by CLOCK_REALTIME. Lost are the messages
	// that did not go to it in between. Again tells a worker what an earlier one knew.
	Host             string
	Reachable, Again bool
	At, Since        int64
	Lost             uint64
	// Network has carried out the change with an index in Later of the request with that Version, so much after its
	// time. Neighbour is as in Change.
	Network   string
	Version   uint64
	Change    int
	Neighbour bool
	Late      time.Duration
	// Forgotten is the number of changes that were carried out, of which there was no room for an event.
	Forgotten uint64
}

// maxChanges bounds the events of changes that wait for the worker. Above it the oldest are forgotten. The others
// are few.
const maxChanges = 1 << 16

// events wait for a reader without making a loop wait.
type events struct {
	some  bell.Bell
	ended chan struct{}
	end   sync.Once

	mu            sync.Mutex
	kept, changes []Event
	forgotten     uint64
}

func newEvents() *events {
	return &events{some: bell.New(), ended: make(chan struct{})}
}

func (e *events) add(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if event.Network == "" {
		e.kept = append(e.kept, event)
	} else {
		if len(e.changes) == maxChanges {
			e.changes = e.changes[1:]
			e.forgotten++
		}
		e.changes = append(e.changes, event)
	}
	e.some.Ring()
}

func (e *events) close() { e.end.Do(func() { close(e.ended) }) }

// next returns the events as soon as there are some, and none once they are closed or until is.
func (e *events) next(until <-chan struct{}) []Event {
	for {
		if all := e.take(); len(all) > 0 {
			return all
		}
		select {
		case <-e.some:
		case <-until:
			return nil
		case <-e.ended:
			return nil
		}
	}
}

func (e *events) take() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := append(e.kept, e.changes...) //nolint:gocritic // both are given away
	if e.forgotten > 0 {
		all = append(all, Event{Forgotten: e.forgotten})
	}
	e.kept, e.changes, e.forgotten = nil, nil, 0
	return all
}
