package radio

import (
	"errors"
	"testing"
)

// sender of 10 frames: 6 released, 1 lost by the model, 3 under way.
func sender() *Ledger {
	l := &Ledger{}
	l.FramesSent, l.BytesSent, l.Released, l.InFlight = 10, 1000, 6, 3
	l.Drops[Loss] = 1
	return l
}

func TestSettleCountsEveryFrameOfAKilledProcessOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change               func(from, to *Ledger)
		kernelFrom, kernelTo Traffic
		sent, received, lost uint64
	}{
		"killed while it waited":          {func(_, _ *Ledger) {}, Traffic{}, Traffic{}, 10, 6, 3},
		"before a read":                   {func(from, _ *Ledger) { from.reading = 1 }, Traffic{FramesRead: 10, BytesRead: 1000}, Traffic{}, 10, 6, 3},
		"after a read":                    {func(from, _ *Ledger) { from.reading = 1 }, Traffic{FramesRead: 11, BytesRead: 1100}, Traffic{}, 11, 6, 4},
		"after the count of a read":       {func(from, _ *Ledger) { from.reading, from.FramesSent = 1, 11 }, Traffic{FramesRead: 11, BytesRead: 1100}, Traffic{}, 11, 6, 4},
		"before a write":                  {func(from, to *Ledger) { from.releasing, to.writing = 7<<1, 1 }, Traffic{}, Traffic{FramesWritten: 6}, 10, 6, 3},
		"after a write":                   {func(from, to *Ledger) { from.releasing, to.writing = 7<<1, 1 }, Traffic{}, Traffic{FramesWritten: 7}, 10, 7, 2},
		"after the mark of a write":       {func(from, to *Ledger) { from.releasing, to.writing = 7<<1|1, 1 }, Traffic{}, Traffic{FramesWritten: 7}, 10, 7, 2},
		"after the count of a write":      {func(from, to *Ledger) { from.releasing, to.FramesReceived = 7<<1|1, 7 }, Traffic{}, Traffic{}, 10, 7, 2},
		"after the count of a release":    {func(from, to *Ledger) { from.releasing, to.FramesReceived, from.Released = 7<<1|1, 7, 7 }, Traffic{}, Traffic{}, 10, 7, 2},
		"with the mark of an old release": {func(from, _ *Ledger) { from.releasing = 6<<1 | 1 }, Traffic{}, Traffic{}, 10, 6, 3},
		"with a copy under way":           {func(from, _ *Ledger) { from.Copies = 1 }, Traffic{}, Traffic{}, 10, 6, 4},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := sender(), &Ledger{}
			to.FramesReceived = 6
			c.change(from, to)
			RecoverLedgers([]*Ledger{from, to}, func(i int) (Traffic, error) { return []Traffic{c.kernelFrom, c.kernelTo}[i], nil })
			if from.FramesSent != c.sent || to.FramesReceived != c.received || from.Drops[Restarted] != c.lost || from.InFlight != 0 {
				t.Errorf("sent %d, received %d, lost %d, in flight %d; want %d, %d, %d, 0", from.FramesSent, to.FramesReceived, from.Drops[Restarted], from.InFlight, c.sent, c.received, c.lost)
			}
			if from.FramesSent+from.Copies != from.Released+from.Drops[Loss]+from.Drops[Restarted] {
				t.Errorf("%+v does not add up", from.Counters)
			}
			if RecoverLedgers([]*Ledger{from, to}, nil); from.Drops[Restarted] != c.lost {
				t.Errorf("settled again, another %d frames were lost", from.Drops[Restarted]-c.lost)
			}
		})
	}
}

func TestSettleGoesByWhatTheKernelCountedSinceTheLedgerBegan(t *testing.T) {
	l := &Ledger{}
	l.Reset(Traffic{FramesRead: 500, BytesRead: 50000})
	l.reading = 1
	RecoverLedgers([]*Ledger{l}, func(int) (Traffic, error) { return Traffic{FramesRead: 501, BytesRead: 50100}, nil })
	if l.FramesSent != 1 || l.BytesSent != 100 {
		t.Errorf("%d frames, %d bytes; want 1 and 100", l.FramesSent, l.BytesSent)
	}
}

func TestSettleDoesWithoutAnInterfaceThatIsGone(t *testing.T) {
	l := sender()
	l.reading = 1
	RecoverLedgers([]*Ledger{l}, func(int) (Traffic, error) { return Traffic{}, errors.New("gone") })
	if lost := l.Drops[Restarted]; lost != 3 {
		t.Errorf("lost %d; want the 3 that were counted", lost)
	}
}
