package radiod

import (
	"testing"
	"time"
)

func TestAStuckLoopIsDistinguishedFromABusyOne(t *testing.T) {
	h := newHealth()
	asked, free := make(chan struct{}), make(chan struct{})
	go h.watch(t.Context(), func() error {
		asked <- struct{}{}
		<-free
		return nil
	})
	<-asked // and it never answers
	started := time.Unix(0, h.answered.Load())
	if err := h.check(started.Add(stuckAfter)); err != nil {
		t.Errorf("a loop that is busy for %v is ill: %v", stuckAfter, err)
	}
	if err := h.check(started.Add(stuckAfter + time.Millisecond)); err == nil {
		t.Errorf("a loop that has not answered for more than %v is well", stuckAfter)
	}
	free <- struct{}{}
	<-asked // the second time: the first answer has been noted
	if answered := time.Unix(0, h.answered.Load()); !answered.After(started) {
		t.Error("an answer made no difference")
	}
	close(free)
}
