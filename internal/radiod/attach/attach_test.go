package attach

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/podradio"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// still are networks in which nothing moves, a keeper that keeps nothing and rules that allow everything.
type still struct {
	joined, held      []string
	fails, holdsFails error
}

func (s *still) Join(r *Radio) error {
	s.joined = append(s.joined, r.PodUID)
	return s.fails
}
func (s *still) Hold(id string, _ int) error {
	s.held = append(s.held, id)
	return s.holdsFails
}
func (*still) Leave(*Radio) error                           { return nil }
func (*still) Release(*Radio)                               {}
func (*still) Pause()                                       {}
func (*still) Resume() error                                { return nil }
func (*still) Left() (l dataplane.Left, err error)          { return l, nil }
func (*still) Restored() error                              { return nil }
func (*still) Drop(string) error                            { return nil }
func (*still) Allowed() (all podnet.Allowed)                { return all }
func (*still) Apply(*os.File, *membership.Attachment) error { return nil }
func (*still) record(string, []runapi.RadioGap) error       { return nil }

// bed is a host with a network of one pod.
type bed struct {
	*Attachments
	store     *membership.Store
	networks  *still
	namespace *os.File
}

func vhf(pod string) *v1alpha1.RadioNetwork {
	n := &v1alpha1.RadioNetwork{Spec: v1alpha1.RadioNetworkSpec{Network: "vhf", MTU: 1400, Members: []v1alpha1.Member{
		{Node: "node-1", NEM: 1, MAC: "02:02:00:00:00:01", Address: "198.18.9.1/24", Interface: "vhf", Primary: true}}}}
	n.UID, n.Spec.Members[0].PodUID = "runvhf", "pod-1"
	if pod != "" {
		n.Spec.Members[0].PodUID = "another"
	}
	return n
}

func newBed(t *testing.T) *bed {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	namespace, err := radiotest.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	folder, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{store: membership.NewStore(), networks: &still{}, namespace: namespace}
	var pods sync.Mutex
	b.store.Set(vhf(""))
	b.Attachments, err = New(Options{Options: podradio.Options{Keeper: b.networks, Finder: &netns.Finder{}, Rules: b.networks, Log: slog.New(slog.DiscardHandler)},
		Folder: folder, Members: b.store, Networks: b.networks, LockPod: func(string) func() { pods.Lock(); return pods.Unlock }, Record: b.networks.record, Changed: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

var request = wire.Request{Command: "ADD", Attachment: wire.Attachment{ContainerID: "container", Interface: "vhf"}, PodUID: "pod-1"}

// has reports whether the pod has its radio.
func (b *bed) has(t *testing.T) (found bool) {
	t.Helper()
	err := netns.Do(b.namespace, func() error {
		_, err := net.InterfaceByName("vhf")
		found = err == nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAMemberThatIsStruckOffWhileItAttachesDoesNotJoin(t *testing.T) {
	b := newBed(t)
	identity, err := netns.Of(b.namespace)
	if err != nil {
		t.Fatal(err)
	}
	a, mtu, err := b.admit(request, identity)
	if err != nil {
		t.Fatal(err)
	}
	b.store.Set(vhf("another"))
	if err := b.create(a, mtu, b.namespace); err == nil || !strings.Contains(err.Error(), "lists it no longer") {
		t.Errorf("error %v; want one that says so", err)
	}
	if b.has(t) || len(b.networks.joined) > 0 {
		t.Errorf("the interface is there: %v, %v joined; want neither", b.has(t), b.networks.joined)
	}
}

func TestARadioThatCannotJoinItsNetworkLeavesNothingBehind(t *testing.T) {
	b := newBed(t)
	b.networks.fails = errors.New("the engine is full")
	if answer := b.Serve(request, b.namespace); !strings.Contains(answer.Error, "the engine is full") {
		t.Errorf("answer %q; want the reason", answer.Error)
	}
	if b.has(t) || b.store.Attachment(membership.Key{PodUID: "pod-1", Interface: "vhf"}) != nil {
		t.Error("the interface or the attachment is there all the same")
	}
}

// restartedWithoutAParent returns the next worker of a pod with a radio, which it has opened and the parent has not taken.
func restartedWithoutAParent(t *testing.T) (b *bed, next *Attachments) {
	t.Helper()
	b = newBed(t)
	err := b.Restore(nil) // knows the boot
	if err != nil {
		t.Fatal(err)
	}
	in := request
	in.Namespace = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), b.namespace.Fd())
	if answer := b.Serve(in, b.namespace); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	b.Close()
	if next, err = New(b.Options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	b.networks.joined, b.networks.held, b.networks.holdsFails = nil, nil, errors.New("the parent does not answer")
	if err := next.Restore(nil); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("error %v; want the parent's", err)
	}
	return b, next
}

func TestARadioIsPassedToTheParentAgainThatCouldNotTakeItAfterARestart(t *testing.T) {
	b, next := restartedWithoutAParent(t)
	records, err := state.Load[membership.Attachment](b.Folder, attachmentFiles)
	if err != nil || len(records) != 1 || !records[0].Pinned {
		t.Errorf("records %+v, %v; want one of a radio that is open", records, err)
	}
	b.networks.holdsFails = nil
	next.Retry(time.Now().Add(time.Minute))
	if len(b.networks.held) != 2 || len(b.networks.joined) != 1 {
		t.Errorf("passed to the parent %d times, joined %d times; want 2 and 1", len(b.networks.held), len(b.networks.joined))
	}
}

// An open descriptor would keep the radio, and its pod's namespace, as long as the worker lives.
func TestARadioOfAFormerMemberThatCouldNotBeRestoredGoes(t *testing.T) {
	b, next := restartedWithoutAParent(t)
	b.store.Set(vhf("another"))
	next.Retry(time.Now().Add(time.Minute))
	if b.has(t) {
		t.Error("its interface is still there")
	}
	if records, err := state.Load[membership.Attachment](b.Folder, attachmentFiles); err != nil || len(records) != 0 {
		t.Errorf("records %+v, %v; want none", records, err)
	}
}

func TestARadioThatReplacesOneThatCouldNotBeRestoredIsTheOnlyOneThatIsOpen(t *testing.T) {
	b, next := restartedWithoutAParent(t)
	before := next.missing[membership.Key{PodUID: "pod-1", Interface: "vhf"}].Descriptor()
	b.networks.holdsFails = nil
	if answer := next.Serve(request, b.namespace); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	next.Retry(time.Now().Add(time.Minute))
	if _, err := unix.FcntlInt(uintptr(before), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
		t.Errorf("descriptor %d of the earlier radio: %v; want it closed", before, err)
	}
	if !b.has(t) {
		t.Error("the new radio has gone with it")
	}
}

// The worker's end closes the TAP's descriptor in the middle of the attachment's removal, which would close
// it too.
func TestAPodThatGoesAsTheWorkerEndsClosesNothingOfOthers(t *testing.T) {
	b := newBed(t)
	if answer := b.Serve(request, b.namespace); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	a := b.existing(membership.Key{PodUID: "pod-1", Interface: "vhf"})
	b.Close()
	others, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, a.Descriptor())
	if err != nil || others != a.Descriptor() {
		t.Fatalf("descriptor %d, %v; want %d, which the worker has closed", others, err, a.Descriptor())
	}
	_ = b.interfaces.Destroy(a) // what becomes of the TAP is the next worker's
	if err := unix.Close(others); err != nil {
		t.Errorf("another's descriptor was closed: %v", err)
	}
}

func TestRingsAreReadInRotationAboveTheLimit(t *testing.T) {
	turn, all := 0, []string{"a", "b", "c", "d", "e"}
	for i, want := range []string{"abc", "dea", "bcd"} {
		if got := strings.Join(nextInRotation(all, &turn, 3), ""); got != want {
			t.Errorf("turn %d: %s; want %s", i, got, want)
		}
	}
	if got := strings.Join(nextInRotation(all[:2], &turn, 3), ""); len(got) != 2 || got[0] == got[1] {
		t.Errorf("of two that are left: %s; want each once", got)
	}
	if got := nextInRotation(all[:0], &turn, 3); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
}
