package podradio

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"

	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// parent holds descriptors by name only, and has rules that allow everything.
type parent struct{ held []string }

func (p *parent) Hold(id string, _ int) error {
	p.held = append(p.held, id)
	return nil
}

func (p *parent) Drop(id string) error {
	p.held = slices.DeleteFunc(p.held, func(other string) bool { return other == id })
	return nil
}

func (*parent) Allowed() (all podnet.Allowed)                { return all }
func (*parent) Apply(*os.File, *membership.Attachment) error { return nil }

func newInterfaces(t *testing.T) (m *Interfaces, p *parent, pod *os.File) {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	pod, err := radiotest.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pod.Close() })
	p = &parent{}
	return &Interfaces{Options{Keeper: p, Rules: p, Finder: &netns.Finder{}, Log: slog.New(slog.DiscardHandler),
		Indexes: func(netns.Identity) []int { return []int{firstIndex} }}}, p, pod
}

// radioOf makes the radio of a pod that is not there yet.
func radioOf(t *testing.T, pod *os.File, engine v1alpha1.Engine) *Radio {
	t.Helper()
	identity, err := netns.Of(pod)
	if err != nil {
		t.Fatal(err)
	}
	return New(membership.Attachment{PodUID: "pod-1", Interface: "vhf", Namespace: identity, NamespacePath: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), pod.Fd()), Engine: engine,
		Member: v1alpha1.Member{MAC: "02:02:00:00:00:01", Address: "198.18.9.1/24"}}, -1)
}

func TestATAPIsTakenOverByItsOwnerOnly(t *testing.T) {
	m, p, pod := newInterfaces(t)
	first := radioOf(t, pod, "")
	if err := m.Create(first, 1400, "ours pod-1", pod); err != nil {
		t.Fatal(err)
	}
	if !first.IsIntact(pod) || first.Descriptor() < 0 || first.Index != firstIndex+1 || len(p.held) != 1 {
		t.Errorf("intact %v, descriptor %d, index %d, held %q; want it made, beside the radio that has the first index", first.IsIntact(pod), first.Descriptor(), first.Index, p.held)
	}
	m.Release(first) // its worker ends
	next := New(first.Attachment, -1)
	if err := m.Adopt(next, "another's pod-1"); !errors.Is(err, netns.ErrGone) {
		t.Errorf("taken over for another owner: %v", err)
	}
	if err := m.Adopt(next, "ours pod-1"); err != nil || next.Descriptor() < 0 || !next.Pinned {
		t.Fatalf("%v, descriptor %d, pinned %v; want it taken over", err, next.Descriptor(), next.Pinned)
	}
	if err := m.Destroy(next); err != nil || next.IsIntact(pod) || len(p.held) > 0 {
		t.Errorf("%v, intact %v, held %q; want it gone, and the parent to hold nothing", err, next.IsIntact(pod), p.held)
	}
}

func TestAVethNeedsNoDescriptor(t *testing.T) {
	m, p, pod := newInterfaces(t)
	a := radioOf(t, pod, v1alpha1.EngineEMANE)
	if err := m.Create(a, 1400, "ours pod-1", pod); err != nil {
		t.Fatal(err)
	}
	if !a.IsIntact(pod) || a.Descriptor() >= 0 || len(p.held) > 0 {
		t.Errorf("intact %v, descriptor %d, held %q; want a veth alone", a.IsIntact(pod), a.Descriptor(), p.held)
	}
	if err := m.Adopt(New(a.Attachment, -1), "ours pod-1"); err != nil {
		t.Error(err)
	}
	if err := m.Destroy(a); err != nil || a.IsIntact(pod) {
		t.Errorf("%v, intact %v; want it gone", err, a.IsIntact(pod))
	}
}
