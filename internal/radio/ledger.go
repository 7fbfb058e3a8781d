package radio

import (
	"fmt"
	"hash/fnv"
	"unsafe"
)

// Ledger is the memory in which a port counts. If it is shared and outlives the process, a new process
// continues with the exact counters of a killed one; see RecoverLedgers.
type Ledger struct {
	// reading is set while a frame has been read but not counted, writing likewise. So a kill between a
	// system call and its counting shows.
	reading, writing uint64
	// releasing is twice the value that Released will have after the current frame, plus 1 once a receiver
	// has the frame.
	releasing uint64
	Counters
	// base is what the kernel had counted when the ledger was reset.
	base Traffic
}

// LedgerLayoutHash is a hash of the memory layout and meaning of a Ledger. Programs with the same hash can use
// each other's ledgers.
func LedgerLayoutHash() uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, unsafe.Sizeof(Ledger{}), unsafe.Offsetof(Ledger{}.Counters), reasonNames, DelayBounds, LatenessBounds) // never fails
	return h.Sum64()
}

// Traffic is what the kernel counted at a TAP since it was made: reads from and writes to its descriptor.
type Traffic struct {
	FramesRead, BytesRead, FramesWritten, BytesWritten uint64
}

// Reset empties a ledger for a TAP that may have carried frames before.
func (l *Ledger) Reset(before Traffic) { *l = Ledger{base: before} }

// RecoverLedgers counts the frames that a killed process had under way as Restarted. The ledgers must be all of one
// network, and none of them in use. kernel is called with the index of a ledger that the process was reading
// or writing at that moment.
//
// Without the kernel's counts, one frame for each loop may be counted as lost although it has reached a
// receiver. The same holds for frames to several receivers. Frames that a Tallier had not tallied are not counted.
func RecoverLedgers(ledgers []*Ledger, kernel func(i int) (Traffic, error)) {
	wrote := false
	for i, l := range ledgers {
		if l.reading|l.writing == 0 {
			continue
		}
		counted, err := kernel(i)
		if err != nil {
			continue
		}
		wrote = l.countUnrecorded(counted) || wrote
	}
	for _, l := range ledgers {
		if target, reached := l.releasing>>1, l.releasing&1 == 1; l.releasing != 0 && (reached || wrote) {
			l.Released = max(l.Released, target)
		}
		l.countLost()
		l.reading, l.writing, l.releasing = 0, 0, 0
	}
}

// countUnrecorded counts the frame that was read or written but not yet counted.
func (l *Ledger) countUnrecorded(kernel Traffic) (wrote bool) {
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

func (l *Ledger) countLost() {
	ended := l.Released
	for reason, frames := range l.Drops {
		if Reason(reason) <= NoReceiver {
			ended += frames
		}
	}
	if all := l.FramesSent + l.Copies; all > ended {
		l.Drops[Restarted] += all - ended
	}
	l.InFlight = 0
}
