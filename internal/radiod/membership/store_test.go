package membership

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// listing makes a network that lists pods.
func listing(uid string, pods ...string) *v1alpha1.RadioNetwork {
	n := &v1alpha1.RadioNetwork{}
	n.UID = types.UID(uid)
	for _, pod := range pods {
		n.Spec.Members = append(n.Spec.Members, v1alpha1.Member{Node: "node-" + pod, PodUID: types.UID(pod), Interface: "vhf"})
	}
	return n
}

func TestOnlyTheNetworkThatListsAPodMakesItAMember(t *testing.T) {
	s := NewStore()
	s.Set(listing("net", "pod-1"))
	one, two := Key{"pod-1", "vhf"}, Key{"pod-2", "vhf"}
	if n, m := s.Member(one); n == nil || m == nil || m.Node != "node-pod-1" || !s.Lists("net", one) || s.Lists("other", one) || !s.IsKnown(one) {
		t.Errorf("member %+v of %v; want that of the network", m, n)
	}
	if n, m := s.Member(Key{"pod-1", "uhf"}); n != nil || m != nil {
		t.Errorf("member %+v of %v at another interface; want none", m, n)
	}
	s.Set(listing("net", "pod-2"))
	if s.Lists("net", one) || s.IsKnown(one) || !s.Lists("net", two) {
		t.Error("the former member is known, or the new one is not")
	}
	s.Remove("net")
	if s.IsKnown(two) || s.Network("net") != nil || len(s.Networks()) != 0 {
		t.Error("a member of a network that is gone is known")
	}
}

func TestAMemberThatMovedToAnotherNetworkStaysItsWhenTheFirstGoes(t *testing.T) {
	s := NewStore()
	s.Set(listing("first", "pod-1"))
	s.Set(listing("second", "pod-1"))
	s.Remove("first")
	if key := (Key{"pod-1", "vhf"}); !s.Lists("second", key) {
		t.Error("the second network does not list it any more")
	}
}

func TestAnAttachmentNeedsAMemberAndOutlivesItUntilDetached(t *testing.T) {
	s := NewStore()
	a := &Attachment{PodUID: "pod-1", Interface: "vhf", NetworkUID: "net"}
	if err := s.Attach(a); err == nil || !strings.Contains(err.Error(), "lists it no longer") {
		t.Errorf("without a network: %v; want an error that says so", err)
	}
	s.Set(listing("net", "pod-1"))
	if err := s.Attach(a); err != nil {
		t.Fatal(err)
	}
	s.Remove("net")
	if s.Attachment(a.Key()) != a || !s.IsKnown(a.Key()) || len(s.Attachments(OfNetwork("net"))) != 1 || len(s.Attachments(OfNetwork("other"))) != 0 {
		t.Error("the attachment went with its network; want it until it is detached")
	}
	another := &Attachment{PodUID: "pod-1", Interface: "vhf", NetworkUID: "net"}
	s.Set(listing("net", "pod-1"))
	if err := s.Attach(another); err != nil {
		t.Fatal(err)
	}
	if s.Detach(a); s.Attachment(a.Key()) != another {
		t.Error("the end of the one before has detached its successor")
	}
	if s.Detach(another); s.Attachment(a.Key()) != nil {
		t.Error("it is still there")
	}
}
