package queues

import (
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radioqueue"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// newServers serves attachments, of which all pods are in one namespace.
func newServers(t *testing.T, all ...*membership.Attachment) (s *Servers, namespace *os.File) {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	namespace, err := radiotest.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	s = New(Options{Log: slog.New(slog.DiscardHandler), Waiting: func(a *membership.Attachment) int { return a.Index },
		Find: func(*membership.Attachment) (*os.File, error) {
			return os.Open(fmt.Sprintf("/proc/self/fd/%d", namespace.Fd()))
		},
		Attachments: func(which func(*membership.Attachment) bool) (some []*membership.Attachment) {
			for _, a := range all {
				if which(a) {
					some = append(some, a)
				}
			}
			return some
		}})
	t.Cleanup(func() { s.end(func(string, *server) bool { return true }) })
	return s, namespace
}

func TestAnAppGetsTheQueuesOfItsOwnPodsRadios(t *testing.T) {
	s, namespace := newServers(t, &membership.Attachment{PodUID: "pod-1", Network: "wan", Index: 5}, &membership.Attachment{PodUID: "pod-1", Network: "vhf", Index: 3},
		&membership.Attachment{PodUID: "pod-1", Network: "sat", Index: 9, Engine: v1alpha1.EngineEMANE})
	s.reconcile()
	var got radioqueue.Report
	err := netns.Do(namespace, func() (err error) {
		c := radioqueue.Client{}
		defer c.Close()
		got, err = c.Ask(time.Second)
		return err
	})
	want := []radioqueue.Network{{Network: "vhf", QueueFrames: 3}, {Network: "wan", QueueFrames: 5}}
	if err != nil || !reflect.DeepEqual(got.Networks, want) {
		t.Errorf("%+v, %v; want %+v: what waits at EMANE is not known", got.Networks, err, want)
	}
}

func TestGuestsAndRadiosOfEMANEHaveNoSocket(t *testing.T) {
	s, _ := newServers(t, &membership.Attachment{PodUID: "vm-1", Guest: &membership.Guest{}}, &membership.Attachment{PodUID: "pod-2", Engine: v1alpha1.EngineEMANE})
	s.reconcile()
	if s.Serves("vm-1") || s.Serves("pod-2") {
		t.Errorf("sockets: guest %v, EMANE %v; want none", s.Serves("vm-1"), s.Serves("pod-2"))
	}
}
