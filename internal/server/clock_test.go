package server

import (
	"context"
	"testing"
	"time"
)

func TestTheClockHasTheTimesOfRequestAndAnswer(t *testing.T) {
	l := newLab(t)
	l.plan()
	before := time.Now()
	reading, err := l.as("nor").Clock(context.Background())
	after := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	if received, sent := time.Unix(0, reading.ReceivedNanoseconds), time.Unix(0, reading.SentNanoseconds); received.Before(before) || sent.Before(received) || after.Before(sent) {
		t.Errorf("asked at %v, answered by %v: %v and %v; want them in between, in order", before, after, received, sent)
	}
}
