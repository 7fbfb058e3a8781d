package gcphase

import (
	"runtime"
	"testing"
	"time"
)

func TestAProgramCollectsOnceAtItsOwnMoment(t *testing.T) {
	collections := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	before, done := collections(), make(chan struct{})
	spread(time.Millisecond, func() { runtime.GC(); close(done) })
	<-done
	if got := collections() - before; got != 1 {
		t.Errorf("%d collections; want 1", got)
	}
}
