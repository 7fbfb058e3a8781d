package mqtt

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"vignette.dev/vignette/internal/traffic/mqttwire"
)

const (
	// A link of 9.8 kbit/s, 100 ms and 10 % loss with a full queue needs most of this to connect.
	connectTimeout = 60 * time.Second
	keepAlive      = 60 * time.Second
	pingTimeout    = 60 * time.Second
	firstBackoff   = 50 * time.Millisecond
	lastBackoff    = 10 * time.Second
)

// dialer opens connections for either library, with one back-off over all failures: refused, timed out
// or lost soon after. It begins short, as a broker that starts at the same moment is there in no time.
type dialer struct {
	broker string
	form   mqttwire.Form
	sent   func(at time.Time, topic string, payload []byte)

	mu      sync.Mutex
	random  *rand.Rand
	backoff time.Duration
	last    time.Time // of the last attempt
}

// dial waits out the back-off and connects.
func (d *dialer) dial(ctx context.Context) (net.Conn, error) {
	timer := time.NewTimer(d.wait(time.Now()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	// No proxy, whatever the environment says: the way to the broker is what is measured.
	inner, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", d.broker)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, form: d.form, sent: d.sent}, nil
}

// wait says how long to wait before an attempt, up to a fifth less than the back-off so that clients do not come together.
func (d *dialer) wait(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.last.IsZero() && now.Sub(d.last) > 2*connectTimeout {
		d.backoff = 0 // the last connection was a long one
	}
	wait := time.Duration(float64(d.backoff) * (1 - 0.2*d.random.Float64()))
	d.backoff = min(max(2*d.backoff, firstBackoff), lastBackoff)
	d.last = now
	return wait
}

// connected notes that the broker has accepted the client, for the next loss to be answered fast.
func (d *dialer) connected() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.backoff = firstBackoff
}
