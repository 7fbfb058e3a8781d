package network

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// inNewNamespace runs the test in a network namespace of its own, apart
// from the machine's.
func inNewNamespace(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces can be made by root only")
	}
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	if _, err := netns.New(); err != nil {
		t.Fatal(err)
	}
}

func linkNames(t *testing.T) map[string]bool {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, link := range links {
		names[link.Attrs().Name] = true
	}
	return names
}

func TestUpTwiceAndDownTwiceAreHarmless(t *testing.T) {
	inNewNamespace(t)
	h := Host{Plan: Plan{Index: 3}, Owner: "vignette /x"}
	for range 2 {
		if err := h.Up(); err != nil {
			t.Fatal(err)
		}
		if err := h.Attach(1, unix.Gettid()); err != nil {
			t.Fatal(err)
		}
		if err := h.Route(1); err != nil {
			t.Fatal(err)
		}
	}
	if names := linkNames(t); !names["vgn3"] || !names["vgn3n1"] {
		t.Errorf("interfaces %v", names)
	}
	for range 2 {
		if err := h.Down(); err != nil {
			t.Fatal(err)
		}
	}
	if names := linkNames(t); names["vgn3"] || names["vgn3n1"] {
		t.Errorf("left: %v", names)
	}
}

func TestAnUplinkIsRemovedEvenIfTheBridgeIsGone(t *testing.T) {
	inNewNamespace(t)
	h := Host{Plan: Plan{Index: 3}, Owner: "vignette /x"}
	if err := errors.Join(h.Up(), h.Attach(1, unix.Gettid()), h.remove("vgn3"), h.Down()); err != nil {
		t.Fatal(err)
	}
	if linkNames(t)["vgn3n1"] {
		t.Error("the uplink is left")
	}
}

func TestWhatBelongsToSomebodyElseIsLeftAlone(t *testing.T) {
	inNewNamespace(t)
	h := Host{Plan: Plan{Index: 3}, Owner: "vignette /x"}
	other := Host{Plan: h.Plan, Owner: "vignette /y"}
	if err := other.Up(); err != nil {
		t.Fatal(err)
	}
	if free, err := h.Free(); free || err != nil {
		t.Errorf("it counts as free (error %v)", err)
	}
	if h.Up() == nil || h.Down() == nil {
		t.Error("no error")
	}
	if !linkNames(t)["vgn3"] {
		t.Error("it was removed")
	}
}

func TestABridgeThatWasNotMarkedInTimeIsTakenOver(t *testing.T) {
	inNewNamespace(t)
	h := Host{Plan: Plan{Index: 3}, Owner: "vignette /x"}
	err := errors.Join(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes("vgn3")}), h.Up(), h.Down())
	if err != nil || linkNames(t)["vgn3"] {
		t.Errorf("error %v, left: %v", err, linkNames(t)["vgn3"])
	}
}

func TestAnInterfaceInUseThatNobodyMarkedIsNotOurs(t *testing.T) {
	inNewNamespace(t)
	bridge := &netlink.Bridge{LinkAttrs: attributes("vgn3")}
	if err := errors.Join(netlink.LinkAdd(bridge), netlink.LinkSetUp(bridge)); err != nil {
		t.Fatal(err)
	}
	if err := (Host{Plan: Plan{Index: 3}, Owner: "vignette /x"}).Down(); err == nil || !linkNames(t)["vgn3"] {
		t.Errorf("error %v, still there: %v", err, linkNames(t)["vgn3"])
	}
}

func TestAddressesInUseAreNotFree(t *testing.T) {
	for name, test := range map[string]struct {
		address string
		want    bool
	}{
		"another network":              {"10.99.0.1/24", true},
		"a part of the pods' network":  {"10.141.7.1/24", false},
		"a wide route over everything": {"10.0.0.1/8", true},
	} {
		t.Run(name, func(t *testing.T) {
			inNewNamespace(t)
			bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "other0"}}
			address, err := netlink.ParseAddr(test.address)
			if err = errors.Join(err, netlink.LinkAdd(bridge), netlink.AddrAdd(bridge, address), netlink.LinkSetUp(bridge)); err != nil {
				t.Fatal(err)
			}
			free, err := Host{Plan: Plan{Index: 3}, Owner: "vignette /x"}.Free()
			if err != nil || free != test.want {
				t.Errorf("free: %v, want %v (error %v)", free, test.want, err)
			}
		})
	}
}
