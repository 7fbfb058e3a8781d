package client

import (
	"context"
	"testing"
	"time"
)

func TestAMessageGoesOutWhenTheConnectionComesWhileTheWindowLooksForIt(t *testing.T) {
	t.Parallel()
	w := newWindow()
	over, end := context.WithCancel(context.Background())
	end()
	defer w.drain(over)
	connected, published := false, make(chan held, 1)
	open := func() bool {
		if connected {
			return true
		}
		connected = true
		go w.wake()
		time.Sleep(50 * time.Millisecond) // wake comes before the window begins to wait
		return false
	}
	w.put("a", nil)
	go w.run(open, func(m held) { published <- m })
	select {
	case <-published:
	case <-time.After(2 * time.Second):
		t.Error("the message waits although there is a connection")
	}
}
