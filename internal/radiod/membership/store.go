// Package membership knows this host's RadioNetworks, their members and the members' attachments. Other packages read it
// by small interfaces of their own. RadioNetworks alone say who is a member: a tenant can write no part of them.
package membership

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Key proves membership. A tenant can write no part of it.
type Key struct{ PodUID, Interface string }

// Store has the networks and the attachments. Its lock is the last that anybody takes.
type Store struct {
	mu          sync.RWMutex
	networks    map[string]*v1alpha1.RadioNetwork
	members     map[Key]string // the network's UID
	attachments map[Key]*Attachment
}

// NewStore knows nothing yet.
func NewStore() *Store {
	return &Store{networks: map[string]*v1alpha1.RadioNetwork{}, members: map[Key]string{}, attachments: map[Key]*Attachment{}}
}

func keyOf(m *v1alpha1.Member) Key { return Key{string(m.PodUID), m.Interface} }

// Set takes a new or changed network.
func (s *Store) Set(object *v1alpha1.RadioNetwork) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := string(object.UID)
	s.forgetMembers(uid, s.networks[uid])
	s.networks[uid] = object
	for i := range object.Spec.Members {
		s.members[keyOf(&object.Spec.Members[i])] = uid
	}
}

// Remove forgets a network; its attachments stay until they are detached.
func (s *Store) Remove(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetMembers(uid, s.networks[uid])
	delete(s.networks, uid)
}

func (s *Store) forgetMembers(uid string, object *v1alpha1.RadioNetwork) {
	if object == nil {
		return
	}
	for i := range object.Spec.Members {
		if key := keyOf(&object.Spec.Members[i]); s.members[key] == uid {
			delete(s.members, key)
		}
	}
}

// Network with a UID, or nil.
func (s *Store) Network(uid string) *v1alpha1.RadioNetwork {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.networks[uid]
}

// Networks by UID.
func (s *Store) Networks() map[string]*v1alpha1.RadioNetwork {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.networks)
}

// Member with a key, and the network that lists it; nil for none.
func (s *Store) Member(key Key) (*v1alpha1.RadioNetwork, *v1alpha1.Member) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.networks[s.members[key]]
	if n == nil {
		return nil, nil
	}
	i := slices.IndexFunc(n.Spec.Members, func(m v1alpha1.Member) bool { return keyOf(&m) == key })
	if i < 0 {
		return nil, nil
	}
	return n, &n.Spec.Members[i]
}

// Lists reports whether a network lists the member.
func (s *Store) Lists(uid string, key Key) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.members[key] == uid && uid != ""
}

// IsKnown reports whether any network lists the member, or it has an attachment that is about to be removed.
func (s *Store) IsKnown(key Key) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.members[key] != "" || s.attachments[key] != nil
}

// Attach adds an attachment, if its network lists it.
func (s *Store) Attach(a *Attachment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.networks[a.NetworkUID] == nil || s.members[a.Key()] != a.NetworkUID {
		return fmt.Errorf("pod %s on %s: its network was removed meanwhile, or lists it no longer", a.PodUID, a.Interface)
	}
	s.attachments[a.Key()] = a
	return nil
}

// Detach removes an attachment, unless another one has replaced it.
func (s *Store) Detach(a *Attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attachments[a.Key()] == a {
		delete(s.attachments, a.Key())
	}
}

// Attachment of a member, or nil.
func (s *Store) Attachment(key Key) *Attachment {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.attachments[key]
}

// Attachments that which accepts.
func (s *Store) Attachments(which func(*Attachment) bool) (all []*Attachment) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, a := range s.attachments {
		if which(a) {
			all = append(all, a)
		}
	}
	return all
}

// OfNetwork accepts the attachments of a network; for Attachments.
func OfNetwork(uid string) func(*Attachment) bool {
	return func(a *Attachment) bool { return a.NetworkUID == uid }
}
