// Package isolation keeps the rules of pods' namespaces current, which say what a node may reach through eth0.
package isolation

import (
	"errors"
	"os"
	"slices"
	"sync"

	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
)

// Options of Rules.
type Options struct {
	// Attachments of the host that which accepts.
	Attachments func(which func(*membership.Attachment) bool) []*membership.Attachment
	// Find returns the namespace of an attachment.
	Find func(a *membership.Attachment) (*os.File, error)
	// LockPod serialises what is done to a pod, until unlock is called.
	LockPod func(uid string) (unlock func())
}

// Rules of this host's pods.
type Rules struct {
	Options

	mu      sync.Mutex
	allowed podnet.Allowed
	// outdated reports whether some pod's rules could not be updated.
	outdated bool
}

// New makes Rules that allow nothing.
func New(o Options) *Rules { return &Rules{Options: o} }

// Set changes what all pods may reach through eth0.
func (r *Rules) Set(allowed podnet.Allowed) error {
	allowed = allowed.Normalise()
	r.mu.Lock()
	same := r.allowed.Equal(allowed) && !r.outdated
	r.allowed, r.outdated = allowed, false
	r.mu.Unlock()
	if same {
		return nil
	}
	pods := map[string]*membership.Attachment{}
	for _, a := range r.Attachments(func(*membership.Attachment) bool { return true }) {
		pods[a.PodUID] = a
	}
	var err error
	for _, a := range pods {
		err = errors.Join(err, r.renew(a))
	}
	if err != nil {
		r.mu.Lock()
		r.outdated = true // the next call tries again
		r.mu.Unlock()
	}
	return err
}

// Allowed is what pods may reach now.
func (r *Rules) Allowed() podnet.Allowed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.allowed
}

func (r *Rules) renew(a *membership.Attachment) error {
	defer r.LockPod(a.PodUID)()
	namespace, err := r.Find(a)
	if errors.Is(err, netns.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer namespace.Close()
	return r.Apply(namespace, a)
}

// Apply loads the rules of an attachment's pod, whether the attachment is known yet or not.
func (r *Rules) Apply(namespace *os.File, a *membership.Attachment) error {
	if a.Member.OpenManagement {
		return nil
	}
	radios := []int{a.Index}
	for _, other := range r.Attachments(func(x *membership.Attachment) bool {
		return x.PodUID == a.PodUID && x.Namespace == a.Namespace && x.Index != a.Index
	}) {
		radios = append(radios, other.Index)
	}
	slices.Sort(radios)
	allowed := r.Allowed()
	allowed.Hosts = append(slices.Clone(allowed.Hosts), podnet.ParseAddresses(a.Gateways)...)
	if a.Guest != nil {
		return podnet.ApplyLauncherRules(namespace, a.Guest.Management, allowed.Normalise())
	}
	return podnet.ApplyRules(namespace, radios, allowed.Normalise())
}
