package isolation

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// pods have attachments, and namespaces that cannot always be found.
type pods struct {
	attachments []*membership.Attachment
	namespace   *os.File
	err         error
	found       []string
}

func (p *pods) all(which func(*membership.Attachment) bool) (some []*membership.Attachment) {
	for _, a := range p.attachments {
		if which(a) {
			some = append(some, a)
		}
	}
	return some
}

func (p *pods) find(a *membership.Attachment) (*os.File, error) {
	p.found = append(p.found, a.PodUID)
	if p.err != nil {
		return nil, p.err
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", p.namespace.Fd()))
}

func newRules(t *testing.T, attachments ...*membership.Attachment) (*Rules, *pods) {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	namespace, err := radiotest.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	p := &pods{attachments: attachments, namespace: namespace}
	return New(Options{Attachments: p.all, Find: p.find, LockPod: func(string) func() { return func() {} }}), p
}

var someHost = podnet.Allowed{Hosts: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}

func TestRulesAreRenewedOncePerPodWhenTheyChange(t *testing.T) {
	r, p := newRules(t, &membership.Attachment{PodUID: "pod-1", Interface: "vhf", Index: 1000}, &membership.Attachment{PodUID: "pod-1", Interface: "uhf", Index: 1001})
	for range 2 {
		if err := r.Set(someHost); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.found) != 1 || !r.Allowed().Equal(someHost) {
		t.Errorf("renewed %q, allowed %+v; want the pod once, and what was set", p.found, r.Allowed())
	}
}

func TestRulesThatCouldNotBeRenewedAreTriedAgain(t *testing.T) {
	r, p := newRules(t, &membership.Attachment{PodUID: "pod-1", Index: 1000})
	p.err = errors.New("the host's processes cannot be read")
	if err := r.Set(someHost); !errors.Is(err, p.err) {
		t.Errorf("error %v; want that of the namespace", err)
	}
	p.err = nil
	if err := r.Set(someHost); err != nil || len(p.found) != 2 {
		t.Errorf("error %v, looked for %q; want another try", err, p.found)
	}
	p.err = netns.ErrGone
	if err := r.Set(podnet.Allowed{}); err != nil {
		t.Errorf("a pod that is gone: %v; want no error", err)
	}
}

func TestANodeThatAskedForAnOpenEth0HasNoRules(t *testing.T) {
	r, p := newRules(t)
	_ = p.namespace.Close() // rules could not be loaded
	if err := r.Apply(p.namespace, &membership.Attachment{Member: v1alpha1.Member{OpenManagement: true}}); err != nil {
		t.Errorf("%v; want none to be loaded", err)
	}
}
