// Package podradio makes, checks, takes over and removes the interface of a radio in a pod's namespace, a TAP or a veth. It
// reads what the kernel and radiod count there.
package podradio

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync/atomic"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
)

// Keeper holds descriptors while workers come and go; a *holder.Client is one.
type Keeper interface {
	Hold(id string, fd int) error
	Drop(id string) error
}

// Rules say what pods may reach through eth0; an *isolation.Rules has them.
type Rules interface {
	Allowed() podnet.Allowed
	Apply(namespace *os.File, a *membership.Attachment) error
}

// Options of Interfaces.
type Options struct {
	Keeper Keeper
	Finder *netns.Finder
	Rules  Rules
	// Indexes are those of the radios in a namespace.
	Indexes func(netns.Identity) []int
	// CongestionControls of TCP that pods may choose beside those that the host allows already.
	CongestionControls []string
	Log                *slog.Logger
}

// Interfaces of the host's radios.
type Interfaces struct{ Options }

// Radio is the interface of one attachment.
type Radio struct {
	membership.Attachment
	Counters *dataplane.CounterFile
	// CongestionControl of TCP for the pod; empty for its host's.
	CongestionControl string
	// Gone is to be called when the kernel has removed the interface. It must not be called with a lock held.
	Gone func()

	fd     int
	unheld bool        // the parent has not taken fd yet
	closed atomic.Bool // fd may be another file's now
	// traffic as last counted by the kernel.
	traffic atomic.Pointer[radio.Traffic]
	// usedIndexes are the interface indexes that the pod's namespace had before.
	usedIndexes []int
}

// New makes the Radio of an attachment, with its descriptor if it has one already.
func New(a membership.Attachment, fd int) *Radio { return &Radio{Attachment: a, fd: fd} }

// Descriptor of the TAP, which the Interfaces close; -1 for none.
func (a *Radio) Descriptor() int { return a.fd }

// Traffic of the interface as the kernel counted it lately; nil before it was read.
func (a *Radio) Traffic() *radio.Traffic { return a.traffic.Load() }

// mayClose reports whether the caller must close the descriptor. A pod may go while the worker ends, and a second close
// could close another file.
func (a *Radio) mayClose() bool { return !a.closed.Swap(true) }

// Create makes and sets up a radio, with the pod's rules. After an error the caller destroys what it made.
func (m *Interfaces) Create(a *Radio, mtu int, owner string, namespace *os.File) error {
	i, err := podnet.ParseInterface(a.Link(), a.Member.MAC, a.Member.Address, mtu, a.Member.Primary)
	if err != nil {
		return err
	}
	i.Owner, i.ForwardOnly = owner, a.Guest != nil
	if err := netns.Do(namespace, a.prepare); err != nil {
		return err
	}
	if err := m.carrierOf(a).put(a, i, namespace); err != nil {
		return err
	}
	if err := a.createGuest(i, namespace); err != nil {
		return err
	}
	m.setCongestionControl(a, namespace)
	return nil
}

// Adopt takes over a radio of an earlier worker that no process holds, if its owner is the same. Called again for a radio
// with a descriptor, it only passes that to the parent, if the parent has not taken it yet.
func (m *Interfaces) Adopt(a *Radio, owner string) error {
	if a.fd >= 0 {
		return m.hold(a)
	}
	namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace)
	if err != nil {
		return err
	}
	defer namespace.Close()
	if err := netns.Do(namespace, func() error { return a.verifyInterface(owner) }); err != nil {
		return err
	}
	return m.carrierOf(a).adopt(a, namespace)
}

// hold passes a radio's descriptor to the parent, unless the parent has it.
func (m *Interfaces) hold(a *Radio) error {
	if !a.unheld {
		return nil
	}
	err := m.Keeper.Hold(a.ID(), a.fd)
	a.unheld = err != nil
	return err
}

// Destroy removes a radio, if it is still there.
func (m *Interfaces) Destroy(a *Radio) error {
	return errors.Join(m.carrierOf(a).destroy(a), m.destroyGuest(a))
}

// Release releases a radio, which stays for the next worker.
func (m *Interfaces) Release(a *Radio) { m.carrierOf(a).release(a) }

// IsIntact reports whether the interface is in the namespace as it was attached.
func (a *Radio) IsIntact(namespace *os.File) bool {
	return netns.Do(namespace, func() error {
		state, err := podnet.Read(a.Link())
		if err == nil && state.Index != a.Index {
			err = fmt.Errorf("interface %s: has index %d, ours had %d", a.Link(), state.Index, a.Index)
		}
		return errors.Join(err, a.verifyGuest())
	}) == nil
}

// setCongestionControl sets TCP's congestion control in a pod. The settings show a refusal. The
// node's agent checks them and fails the run.
func (m *Interfaces) setCongestionControl(a *Radio, namespace *os.File) {
	wanted := a.CongestionControl
	if wanted == "" || a.Guest != nil { // a guest has its own kernel
		return
	}
	set := func() error { return netns.Do(namespace, func() error { return podnet.SetCongestionControl(wanted) }) }
	err := podnet.CheckCongestionControl(wanted, m.CongestionControls) // first, as the kernel loads a module for any name
	if err == nil {
		err = set()
	}
	if err != nil && slices.Contains(m.CongestionControls, wanted) && podnet.AllowCongestionControl(wanted) == nil {
		err = set()
	}
	if err != nil {
		m.Log.Warn("TCP keeps the host's congestion control", "pod", a.PodUID, "interface", a.Interface, "error", err)
		return
	}
	a.Settings[podnet.CongestionControl] = wanted
}

// prepare inspects the pod's namespace before the radio is made.
func (a *Radio) prepare() error {
	// A radio of that name is left from a worker that died before it wrote its record.
	if err := podnet.Remove(a.Link()); err != nil {
		return err
	}
	if a.Guest != nil {
		if err := a.prepareGuest(); err != nil {
			return err
		}
	} else if err := podnet.WithoutIPv6(); err != nil {
		return err
	}
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("interfaces: %w", err)
	}
	for _, link := range links {
		a.usedIndexes = append(a.usedIndexes, link.Index)
	}
	gateways, err := podnet.Gateways()
	for _, gateway := range gateways {
		a.Gateways = append(a.Gateways, gateway.String())
	}
	return err
}

// moveAndLoadRules moves the TAP, sets it up and loads the rules. Moving and loading each wait for the kernel's
// grace periods, more than 10 ms together, so they run at the same time. The rules only need the interface's
// index, which is requested beforehand.
func (m *Interfaces) moveAndLoadRules(a *Radio, temporary string, i podnet.Interface, namespace *os.File) error {
	a.Index = m.freeIndex(a)
	guarded := make(chan error, 1)
	go func(planned membership.Attachment) { guarded <- m.Rules.Apply(namespace, &planned) }(a.Attachment)
	planned := a.Index
	err := podnet.Move(temporary, i, namespace, planned)
	if err == nil {
		err = netns.Do(namespace, func() (err error) {
			a.Index, a.Settings, err = podnet.SetUp(temporary, i)
			return err
		})
	}
	if err := errors.Join(err, <-guarded); err != nil {
		return err
	}
	if a.Index != planned {
		return m.Rules.Apply(namespace, &a.Attachment)
	}
	return nil
}

// firstIndex of radio interfaces in pods, above those that the kernel assigns by itself.
const firstIndex = 1000

// freeIndex returns an index that no interface in the pod has. On hosts that have made many interfaces eth0
// may have a number above firstIndex, and the rules would treat it as a radio.
func (m *Interfaces) freeIndex(a *Radio) int {
	index, used := firstIndex, append(m.Indexes(a.Namespace), a.usedIndexes...)
	for slices.Contains(used, index) {
		index++
	}
	return index
}

// State returns the state of an attachment's interface.
func (m *Interfaces) State(a *Radio) (state podnet.State, err error) {
	namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace)
	if err != nil {
		return state, err
	}
	defer namespace.Close()
	return netns.Get(namespace, func() (podnet.State, error) { return podnet.Read(a.Link()) })
}

// ReadRings reads the rings of one pod. A pod that cannot be read is about to be removed.
func (m *Interfaces) ReadRings(identity netns.Identity, attachments []*Radio) {
	namespace, err := m.Finder.Find(attachments[0].NamespacePath, identity)
	if err != nil {
		return
	}
	defer namespace.Close()
	m.readRingsIn(namespace, attachments)
}

// ReadRingAtEnd reads the drops of a TAP's ring before its end, if its namespace is at its path. Searching
// for it would take long when hundreds go at once.
func (m *Interfaces) ReadRingAtEnd(a *Radio) {
	if namespace := m.Finder.At(a.NamespacePath, a.Namespace); namespace != nil {
		defer namespace.Close()
		m.readRingsIn(namespace, []*Radio{a})
	}
}

func (m *Interfaces) readRingsIn(namespace *os.File, attachments []*Radio) {
	states := make([]podnet.State, len(attachments))
	_ = netns.Do(namespace, func() error {
		for i, a := range attachments {
			if state, err := podnet.Read(a.Link()); err == nil {
				states[i] = state
			}
		}
		return nil
	})
	for i, a := range attachments {
		a.Counters.SetRingDrops(states[i].RingDrops)
		if states[i].Index == a.Index {
			a.traffic.Store(&states[i].Traffic)
		}
	}
}

// ReadRing reads the drops of a TAP's ring now.
func (m *Interfaces) ReadRing(a *Radio) { m.ReadRings(a.Namespace, []*Radio{a}) }
