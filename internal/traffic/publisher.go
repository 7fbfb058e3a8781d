package traffic

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// publisher sends messages on an absolute schedule: message number k, from 1, is due at
// start + firstAfter + (k-1)·period, whatever became of the ones before.
type publisher struct {
	config   trafficconfig.Publish
	entity   string
	maker    payload.Maker
	client   transport.Client
	recorder *recorder
	start    time.Time
	// next is the number of the first message to be sent.
	next int64
	// sizeHint is the size of the message before.
	sizeHint int
	sleep    func(ctx context.Context, until time.Time) error
	now      func() time.Time
}

// due is when a message is to be made.
func (p *publisher) due(number int64) time.Time {
	seconds := p.config.FirstAfterSeconds + float64(number-1)*p.config.PeriodSeconds
	return p.start.Add(time.Duration(math.Round(seconds * 1e9)))
}

// run publishes from a message number on until ctx ends. A message whose time has passed goes out at once; none is left out.
func (p *publisher) run(ctx context.Context, number int64) {
	for ; ; number++ {
		due := p.due(number)
		if p.sleep(ctx, due) != nil {
			return
		}
		p.publish(number, due)
	}
}

func (p *publisher) publish(number int64, due time.Time) {
	at := p.now()
	id := messageID(p.entity, number)
	// A new buffer each time: protocols may keep the content until it is acknowledged.
	content := p.maker.Append(make([]byte, 0, p.sizeHint+16), id, at)
	p.sizeHint = len(content)
	p.recorder.triggered(at, id, p.config.Topic, len(content))
	p.recorder.metrics.lateness.Observe(max(0, at.Sub(due).Seconds()))
	if err := p.client.Publish(p.config.Topic, content); err != nil {
		p.recorder.refused(id)
	}
}

// firstNumber is the number to begin with. A log that already has messages of this entity is that of an
// instance that was restarted: it goes on with the next message that is not past, so that no id is used twice and
// nothing is sent in a burst.
func (p *publisher) firstNumber(last int64) int64 {
	if last == 0 {
		return 1
	}
	since := p.now().Sub(p.due(1)).Seconds()
	return max(last+1, int64(math.Ceil(since/p.config.PeriodSeconds))+1)
}

// lastLogged finds the highest number of the entity's messages in the log file named by the environment; 0 without one.
func lastLogged(entity string) (int64, error) {
	path := os.Getenv(messagelog.EnvPath)
	if path == "" {
		return 0, nil
	}
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("message log: %w", err)
	}
	defer f.Close()
	last := int64(0)
	_, err = messagelog.Read(f, func(r messagelog.Record) {
		if number, ok := messageNumber(entity, r.ID); ok && r.Status == messagelog.Triggered {
			last = max(last, number)
		}
	})
	return last, err
}

// messageID names the entity's message of a number.
func messageID(entity string, number int64) string {
	return entity + "_" + strconv.FormatInt(number, 10)
}

// messageNumber is the number in an id of the entity.
func messageNumber(entity, id string) (int64, bool) {
	text, ok := strings.CutPrefix(id, entity+"_")
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil && number > 0
}
