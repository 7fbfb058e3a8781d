package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/emane/ota"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// fakeEMANEProcess simulates an EMANE process's sending and receiving.
type fakeEMANEProcess struct {
	*ota.Channel
	heard chan string
}

func (p *emanePod) voice(t *testing.T, n *v1alpha1.RadioNetwork) *fakeEMANEProcess {
	t.Helper()
	o := &fakeEMANEProcess{heard: make(chan string, 100)}
	p.do(t, func() (err error) {
		o.Channel, err = ota.Open(context.Background(), emane.InPod(n, 1).OTAGroup, emane.PodDevice)
		return err
	})
	t.Cleanup(func() { _ = o.Close() })
	go func() {
		buffer := make([]byte, 65536)
		for {
			size, err := o.Receive(buffer)
			if err != nil {
				return
			}
			o.heard <- string(buffer[:size])
		}
	}()
	return o
}

// hears returns all datagrams until none comes.
func (o *fakeEMANEProcess) hears() (all []string) {
	for {
		select {
		case text := <-o.heard:
			all = append(all, text)
		case <-time.After(300 * time.Millisecond):
			return all
		}
	}
}

// carriedOverHosts is a network of two members on two hosts, which EMANE carries.
func carriedOverHosts(t *testing.T) (a, b *site, podA, podB *emanePod, n *v1alpha1.RadioNetwork) {
	t.Helper()
	cut := &atomic.Bool{}
	a, b = newSite(t, "host-a", cut, skewedClock{}), newSite(t, "host-b", cut, skewedClock{})
	podA, podB = newEMANEPod(t), newEMANEPodOf(t, otherEMANEUID)
	podA.manager(a.Manager)
	b.Networks.Host, b.Options.Finder = "host-b", netns.Finder{Proc: podB.proc}
	podA.appear(t)
	podB.appear(t)
	n = configuredRadios(emaneNetwork("pod-1", "pod-2"))
	spreadOver(t, n, a, b)
	return a, b, podA, podB, n
}

func TestWhatEMANESendsIsReceivedOnceByItsProcessesOnAllHosts(t *testing.T) {
	_, _, podA, podB, n := carriedOverHosts(t)
	one, neighbour, far := podA.voice(t, n), podA.voice(t, n), podB.voice(t, n)
	long := string(make([]byte, 5000)) // longer than any datagram between hosts
	eventually(t, "the channel reaches the other host", func() bool {
		if err := one.Send([]byte("are you there")); err != nil {
			t.Fatal(err)
		}
		return len(far.hears()) > 0
	})
	neighbour.hears()
	for _, text := range []string{"hello", long} {
		if err := one.Send([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for name, o := range map[string]*fakeEMANEProcess{"its neighbour": neighbour, "the other host": far} {
			if got := o.hears(); len(got) != 1 || got[0] != text {
				t.Errorf("%s hears %d datagrams: want the %d bytes once", name, len(got), len(text))
			}
		}
	}
	if err := far.Send([]byte("and back")); err != nil {
		t.Fatal(err)
	}
	if got := one.hears(); len(got) != 1 || got[0] != "and back" {
		t.Errorf("%q came back: want the other host's once, and nothing of its own", got)
	}
}

func TestWhatEMANESendsStaysOnItsHostOnceNoOtherHasMembers(t *testing.T) {
	a, _, podA, podB, n := carriedOverHosts(t)
	one, far := podA.voice(t, n), podB.voice(t, n)
	send := func() {
		if err := one.Send([]byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the channel reaches the other host", func() bool { send(); return len(far.hears()) > 0 })
	alone := n.DeepCopy()
	alone.Status.Hosts = nil
	if err := a.SetNetwork(alone); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it does not any more", func() bool { send(); return len(far.hears()) == 0 })
}

func TestAnOverTheAirChannelNeedsItsDevice(t *testing.T) {
	p := newPod(t, "pod")
	p.do(t, func() error {
		_, err := ota.Open(context.Background(), emane.DefaultOTAGroup, emane.PodDevice)
		if err == nil {
			return errors.New("it was opened without a device")
		}
		return nil
	})
}
