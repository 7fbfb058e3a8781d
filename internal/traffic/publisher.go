package traffic

import (
	"context"
	"math"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/traffic/transport"
)

// publisher sends messages on an absolute schedule: the k-th since the planned start is due at start + firstAfter + the
// timetable's offset, independent of earlier messages.
type publisher struct {
	firstAfterSeconds float64
	// afterConnection makes the start that of the first connection. connectionless ones wait for their socket only.
	afterConnection, connectionless bool
	// promised: the protocol keeps messages until the broker has them (QoS 1 and 2).
	promised  bool
	entity    string
	timetable timetable
	// adapt adapts the period to the radio; nil for a fixed rate.
	adapt    *adaptation
	client   transport.Client
	recorder *recorder
	start    time.Time
	// numbers of messages go on after a start by the timeline, at which the timetable begins anew.
	numbers messagelog.Numbers
	// sizeHint is the size of the last message.
	sizeHint int
	sleep    func(ctx context.Context, until time.Time) error
	now      func() time.Time
}

// sinceStart counts a message from the planned start, as the timetable does.
func (p *publisher) sinceStart(number int64) int64 { return number - p.numbers.Before }

// due returns when a message is to be made; false if there is no message of the number.
func (p *publisher) due(number int64) (time.Time, bool) {
	after, ok := p.timetable.due(p.sinceStart(number))
	return p.start.Add(time.Duration(math.Round(p.firstAfterSeconds*1e9)) + after), ok
}

// run publishes from message number on until ctx or the messages end. A message whose time has passed is sent at once; none
// is left out.
func (p *publisher) run(ctx context.Context, number int64) {
	if !p.awaitConnection(ctx, number) {
		return
	}
	if p.adapt != nil {
		p.runAdapted(ctx, number)
		return
	}
	for ; ; number++ {
		due, ok := p.due(number)
		if !ok || p.sleep(ctx, due) != nil {
			return
		}
		p.publish(number, due)
	}
}

// awaitConnection waits for the first connection, where message number needs one. It reports whether ctx goes on.
func (p *publisher) awaitConnection(ctx context.Context, number int64) bool {
	var over <-chan time.Time
	switch {
	case p.afterConnection:
	case p.connectionless:
		over = time.After(openTimeout)
	default:
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-over:
	case <-p.recorder.connectedOnce:
		if p.afterConnection {
			p.start = p.startAt(p.now(), number)
		}
	}
	return true
}

// startAt returns the start of the schedule for a connection before message number. After a restart that message comes next,
// because earlier ones are over.
func (p *publisher) startAt(connected time.Time, number int64) time.Time {
	if after, ok := p.timetable.due(p.sinceStart(number)); ok && p.sinceStart(number) > 1 { // it was restarted
		return connected.Add(-after)
	}
	return connected
}

func (p *publisher) publish(number int64, due time.Time) {
	at := p.now()
	id, topic := messagelog.MessageID(p.entity, number), p.timetable.topic(p.sinceStart(number))
	// A new buffer each time, as protocols may keep the content until it is acknowledged.
	content := p.timetable.content(make([]byte, 0, p.sizeHint+16), p.sinceStart(number), id, at)
	p.sizeHint = len(content)
	if err := p.numbers.Note(number); err != nil {
		p.recorder.notLogged(err)
	}
	p.recorder.triggered(at, id, topic, content, p.timetable.reported(at))
	p.recorder.metrics.lateness.Observe(max(0, at.Sub(due).Seconds()))
	err := errTooMuchWaits
	if p.recorder.hasRoom() {
		err = p.client.Publish(topic, content)
	}
	if err != nil {
		p.recorder.refused(id, err)
	}
}

// firstNumber is the number of the first message. An instance that crashed leaves out those that are past.
func (p *publisher) firstNumber() int64 {
	return p.numbers.First(func(sinceStart int64) bool {
		due, ok := p.due(p.numbers.Before + sinceStart)
		return ok && due.Before(p.now())
	})
}
