package olsr

import (
	"math/rand"
	"net/netip"
	"testing"
)

func TestLinksAreFoundByAddressAndInOrderWhateverComesAndGoes(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	var all links
	want := map[netip.Addr]*link{}
	for range 5000 {
		a := netip.AddrFrom4([4]byte{10, 0, byte(random.Intn(2)), byte(random.Intn(20))})
		switch l := want[a]; {
		case all.of(a) != l:
			t.Fatalf("the link to %v is %p; want %p", a, all.of(a), l)
		case l == nil:
			want[a] = &link{address: a}
			all.add(want[a])
		default:
			all.remove(l)
			delete(want, a)
		}
		if len(all.order) != len(want) || len(all.index.Addrs) != len(want) {
			t.Fatalf("%d links in order, %d numbers; want %d", len(all.order), len(all.index.Addrs), len(want))
		}
		for i := 1; i < len(all.order); i++ {
			if all.order[i-1].address.Compare(all.order[i].address) >= 0 {
				t.Fatalf("%v is before %v", all.order[i-1].address, all.order[i].address)
			}
		}
	}
}
