package worker

import (
	"context"
	"net"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/radioqueue"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// offerQueues until the test's end, or until what it returns is called.
func offerQueues(t *testing.T, m *Manager) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Queues.Run(ctx)
	}()
	end = func() {
		cancel()
		<-done
	}
	t.Cleanup(end)
	return end
}

// asks radiod from inside the pod for the frames that wait; -1 where it does not answer.
func (p *pod) asks(t *testing.T) (frames int) {
	t.Helper()
	frames = -1
	p.do(t, func() error {
		c := radioqueue.Client{}
		defer c.Close()
		if report, err := c.Ask(time.Second); err == nil {
			frames = report.Most()
		}
		return nil
	})
	return frames
}

func TestAppsGetTheirOwnNodesQueue(t *testing.T) {
	m := newManager(t)
	offerQueues(t, m)
	n := networkOf("run", "wan", "pod-1", "pod-2")
	rate := v1alpha1.DataRate("8kbit")
	n.Spec.Waveform.Link = &v1alpha1.LinkModel{Rate: &rate, Delay: "1ms", Loss: "0%", Limit: 1000}
	if err := m.SetNetwork(n); err != nil {
		t.Fatal(err)
	}
	one, two, other := newPod(t, "pod-1"), newPod(t, "pod-2"), newPod(t, "no member")
	one.attach(t, m, "wan")
	two.attach(t, m, "wan")
	eventually(t, "both are answered", func() bool { return one.asks(t) >= 0 && two.asks(t) >= 0 })
	if other.asks(t) >= 0 {
		t.Error("a pod without a radio was answered")
	}
	one.do(t, func() error {
		c, err := net.Dial("udp4", "198.18.9.2:9")
		if err != nil {
			return err
		}
		defer c.Close()
		for range 20 {
			if _, err := c.Write(make([]byte, 1000)); err != nil { // a second each
				return err
			}
		}
		return nil
	})
	eventually(t, "its own frames wait", func() bool { return one.asks(t) >= 18 })
	if frames := two.asks(t); frames > 3 {
		t.Errorf("%d frames wait at the other node, which sends nothing of its own", frames)
	}
}

func TestAnAppIsAnsweredAgainByTheNextRadiod(t *testing.T) {
	parent, directory := &holder.Holder{}, t.TempDir()
	if newManager(t) == nil {
		return
	}
	first, _ := managerWith(t, parent, directory)
	end := offerQueues(t, first)
	if err := first.SetNetwork(networkOf("run", "wan", "pod-1")); err != nil {
		t.Fatal(err)
	}
	p := newPod(t, "pod-1")
	p.attach(t, first, "wan")
	eventually(t, "an answer", func() bool { return p.asks(t) >= 0 })
	end()
	if p.asks(t) >= 0 {
		t.Error("an answer of a radiod that has ended")
	}
	first.Close()
	next, held := managerWith(t, parent, directory)
	if err := next.Restore(held); err != nil {
		t.Fatal(err)
	}
	offerQueues(t, next)
	eventually(t, "an answer of the next one", func() bool { return p.asks(t) >= 0 })
}

func TestASocketDoesNotKeepANodeThatIsGone(t *testing.T) {
	m := newManager(t)
	offerQueues(t, m)
	if err := m.SetNetwork(networkOf("run", "wan", "pod-1")); err != nil {
		t.Fatal(err)
	}
	p := newPod(t, "pod-1")
	p.attach(t, m, "wan")
	eventually(t, "an answer", func() bool { return p.asks(t) >= 0 })
	lives := p.witness(t)
	p.end()
	time.Sleep(300 * time.Millisecond)
	if !lives() {
		t.Fatal("the namespace went by itself: the test tests nothing")
	}
	if err := m.RemovePinned(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace has ended", func() bool { return !lives() })
}
