package radio

import (
	"fmt"
	"hash/fnv"
	"unsafe"
)

// Ledger is what a port counts, as it lies in memory. Where that memory is shared and outlives the
// process, the next one goes on with the exact counters of one that was killed; see Settle.
type Ledger struct {
	// What the loop is about, so that a kill between a system call and its being counted shows:
	// reading is set from before a frame is read until it is counted, writing likewise.
	reading, writing uint64
	// releasing is twice the value that Released has once the frame being handed out has left, plus 1
	// once a receiver has it.
	releasing uint64
	Counters
	// base is what the kernel had counted before the ledger began.
	base Traffic
}

// LedgerLayout is a number that differs, as good as certainly, where a Ledger's memory means something else.
func LedgerLayout() uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, unsafe.Sizeof(Ledger{}), unsafe.Offsetof(Ledger{}.Counters), reasonNames, DelayBounds, LatenessBounds) // never fails
	return h.Sum64()
}

// Traffic is what the kernel counted at a TAP since it was made: what was read from its descriptor and
// written to it.
type Traffic struct {
	FramesRead, BytesRead, FramesWritten, BytesWritten uint64
}

// Begin starts an empty ledger for a TAP that may have carried frames before.
func (l *Ledger) Begin(before Traffic) { *l = Ledger{base: before} }

// Settle books what a process that was killed had under way: those frames are lost, and counted as
// Restarted. The ledgers must be all of one network, and none of them in use. kernel is asked, by the
// ledger's place, for the one or two interfaces that the process was reading or writing at that very moment.
//
// Without the kernel's counts, and of frames to several receivers, one frame for each loop may be
// counted as lost that has reached a receiver.
// What a Tallier had not tallied is not counted.
func Settle(ledgers []*Ledger, kernel func(i int) (Traffic, error)) (lost []uint64) {
	wrote := false
	for i, l := range ledgers {
		if l.reading|l.writing == 0 {
			continue
		}
		counted, err := kernel(i)
		if err != nil {
			continue
		}
		wrote = l.catchUp(counted) || wrote
	}
	for _, l := range ledgers {
		if target, reached := l.releasing>>1, l.releasing&1 == 1; l.releasing != 0 && (reached || wrote) {
			l.Released = max(l.Released, target)
		}
		lost = append(lost, l.loseUnderWay())
		l.reading, l.writing, l.releasing = 0, 0, 0
	}
	return lost
}

// catchUp counts the frame that was read or written and not counted any more.
func (l *Ledger) catchUp(kernel Traffic) (wrote bool) {
	if n := kernel.FramesRead - l.base.FramesRead; l.reading != 0 && n == l.FramesSent+1 {
		l.FramesSent, l.BytesSent = n, kernel.BytesRead-l.base.BytesRead
	}
	n := kernel.FramesWritten - l.base.FramesWritten
	if l.writing == 0 || n != l.FramesReceived+1 {
		return false
	}
	l.FramesReceived, l.BytesReceived = n, kernel.BytesWritten-l.base.BytesWritten
	return true
}

func (l *Ledger) loseUnderWay() (lost uint64) {
	ended := l.Released
	for reason, frames := range l.Drops {
		if Reason(reason) <= NoReceiver {
			ended += frames
		}
	}
	if all := l.FramesSent + l.Copies; all > ended {
		lost = all - ended
	}
	l.Drops[Restarted] += lost
	l.InFlight = 0
	return lost
}
