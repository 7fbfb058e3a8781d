package dataplane

import (
	"sync"
	"time"
)

// Event is what the agent has to know. Either Gone or Network is set.
type Event struct {
	// Number of the event; events are numbered from 1.
	Number uint64
	// Gone is a port whose interface the kernel has removed. It is to be detached.
	Gone PortID
	// Network has carried out the change with an index in Later of the request with that Version, so much after its
	// time.
	Network string
	Version uint64
	Change  int
	Late    time.Duration
}

const (
	// maxEvents bounds the events that wait for an agent. Above it the oldest are forgotten.
	maxEvents = 1 << 16
	// eventsWait is how long another process waits for events at a time.
	eventsWait = time.Second
	never      = 1<<63 - 1
)

// events wait for a reader without making a loop wait.
type events struct {
	some, ended chan struct{}
	end         sync.Once

	mu   sync.Mutex
	all  []Event
	last uint64
}

func newEvents() *events {
	return &events{some: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (e *events) add(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	event.Number = e.last
	if len(e.all) == maxEvents {
		e.all = e.all[1:]
	}
	e.all = append(e.all, event)
	select {
	case e.some <- struct{}{}:
	default:
	}
}

func (e *events) close() { e.end.Do(func() { close(e.ended) }) }

// after forgets the events up to a number, and returns the others as soon as there are some. It returns none after a
// time, and once the events are closed.
func (e *events) after(seen uint64, wait time.Duration) []Event {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if all := e.later(seen); len(all) > 0 {
			return all
		}
		select {
		case <-e.some:
		case <-e.ended:
			return nil
		case <-timer.C:
			return nil
		}
	}
}

func (e *events) later(seen uint64) []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.all) > 0 && e.all[0].Number <= seen {
		e.all = e.all[1:]
	}
	return append([]Event(nil), e.all...)
}
