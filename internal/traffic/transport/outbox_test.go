package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// write takes all messages that are to be written now.
func write(t *testing.T, o *Outbox) (topics []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		m, ok := o.take()
		if !ok {
			if _, ok := o.Next(ctx); ok {
				t.Fatal("an empty outbox has a next message")
			}
			return topics
		}
		topics = append(topics, fmt.Sprintf("%d:%s", m.Number, m.Topic))
	}
}

func put(t *testing.T, o *Outbox, topics ...string) {
	t.Helper()
	for _, topic := range topics {
		if err := o.Put(topic, []byte(topic)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnOutboxThatKeepsMessagesWritesThemAgainUntilTheyAreAcknowledged(t *testing.T) {
	o := NewOutbox(true, Events{})
	put(t, o, "a", "b")
	o.Connected()
	put(t, o, "c", "d")
	if got := write(t, o); !slices.Equal(got, []string{"1:a", "2:b", "3:c", "4:d"}) {
		t.Errorf("wrote %v", got)
	}
	o.Acknowledge(2)
	o.Reject(1)
	if got := write(t, o); !slices.Equal(got, []string{"5:a"}) {
		t.Errorf("wrote %v after the broker had refused a", got)
	}
	put(t, o, "e")
	o.Disconnected()
	put(t, o, "f")
	o.Connected()
	if got := write(t, o); !slices.Equal(got, []string{"1:c", "2:d", "3:a", "4:e", "5:f"}) {
		t.Errorf("wrote %v on the second connection", got)
	}
	for number := range uint64(6) {
		o.Acknowledge(number)
	}
	if !o.Empty() || o.bytes != 0 {
		t.Errorf("not empty: %d bytes", o.bytes)
	}
}

func TestAnOutboxThatKeepsNothingForgetsWhatHasNoConnection(t *testing.T) {
	var dropped []string
	o := NewOutbox(false, Events{Unsent: func(_ string, payload []byte) { dropped = append(dropped, string(payload)) }})
	if err := o.Put("a", nil); !errors.Is(err, ErrNotConnected) {
		t.Errorf("%v; want %v", err, ErrNotConnected)
	}
	o.Connected()
	put(t, o, "b", "b2")
	if m, ok := o.take(); ok {
		o.NotWritten(m)
	}
	o.Disconnected()
	if !slices.Equal(dropped, []string{"b", "b2"}) {
		t.Errorf("told that %q were dropped", dropped)
	}
	o.Connected()
	put(t, o, "c")
	if got := write(t, o); !slices.Equal(got, []string{"1:c"}) || !o.Empty() {
		t.Errorf("wrote %v", got)
	}
	large := make([]byte, maxWaiting+1) // alone it has room
	if err := errors.Join(o.Put("d", large), o.Put("e", []byte("x"))); !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v; want %v", err, ErrNoRoom)
	}
}

func TestTheNextMessageIsWaitedFor(t *testing.T) {
	o := NewOutbox(true, Events{})
	go func() {
		time.Sleep(20 * time.Millisecond)
		_ = o.Put("a", nil)
	}()
	if m, ok := o.Next(t.Context()); !ok || m.Topic != "a" {
		t.Errorf("got %+v, %v", m, ok)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	o.WaitEmpty(ctx)
	if ctx.Err() == nil {
		t.Error("did not wait for the acknowledgement")
	}
}
