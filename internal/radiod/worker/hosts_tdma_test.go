package worker

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/peers"
)

// slotsNodes send slotsRounds frames each.
const slotsNodes, slotsRounds = 4, 25

// linearPCR has half of the frames arrive at a SINR of 10 dB.
const linearPCR = `<tdmabasemodel-pcr packetsize="0"><datarate bps="1M"><entry sinr="0" por="0"/><entry sinr="20" por="100"/></datarate></tdmabasemodel-pcr>`

// slotsTest is what nodes with time slots received of each other.
type slotsTest struct {
	delays map[string]time.Duration // by receiver, sender and number
	// worst is how late a frame was handed over at most.
	worst time.Duration
	// late bursts, and those that were of no use.
	late, unusable uint64
}

// playSlots has nodes at 4.5 km from each other send in rotation, so that some frames are lost by their SINR.
func playSlots(t *testing.T, sites ...*site) slotsTest {
	t.Helper()
	var uids []string
	for i := range slotsNodes {
		uids = append(uids, fmt.Sprintf("pod-%d", i+1))
	}
	n := networkOf("run-1", "vhf", uids...)
	n.Spec.Seed, n.Spec.Waveform = 4711, slotsOf("20ms")
	n.Spec.Waveform.TDMA.PCR = linearPCR
	for i := range n.Spec.Members {
		n.Spec.Members[i].Position = northOf(i, 4500)
	}
	pods := spreadOver(t, n, sites...)
	var sockets []*net.UDPConn
	for _, p := range pods {
		sockets = append(sockets, p.listenStamped(t, "0.0.0.0:7000"))
	}
	time.Sleep(2 * slotsNodes * 20 * time.Millisecond) // nodes send from their next multiframe on
	sent := sendInSlots(t, pods, sites)
	for node := range pods {
		eventually(t, "the last frames are sent", func() bool { return hasSent(sites, node, slotsRounds) })
	}
	time.Sleep(100 * time.Millisecond) // they are on other hosts as well
	r := slotsTest{delays: map[string]time.Duration{}}
	for i, s := range sockets {
		readStamped(t, s, func(sender, number int, at int64) {
			if sender != i {
				r.delays[fmt.Sprintf("%d of node %d at node %d", number, sender+1, i+1)] = time.Duration(at - sent[sender][number])
			}
		})
	}
	for _, s := range sites {
		for _, c := range s.Counters(false) {
			for i := range c.Nodes {
				r.worst = max(r.worst, time.Duration(c.Nodes[i].WorstLateness))
			}
		}
		for _, c := range s.hosts.States() {
			r.late, r.unusable = r.late+c.Late, r.unusable+c.Unusable
		}
	}
	return r
}

// hasSent waits until a node's radio has sent that many frames.
func hasSent(sites []*site, node, frames int) bool {
	for _, c := range sites[node%len(sites)].Counters(false) {
		for i := range c.Nodes {
			if n := &c.Nodes[i]; n.Node == fmt.Sprintf("node-%d", node+1) {
				return n.FramesSent >= uint64(frames) && n.InFlight == 0
			}
		}
	}
	return false
}

// sendInSlots has each node send a frame in the middle of its slot in every second multiframe, so that it
// goes in the next slot. It returns the times by CLOCK_REALTIME. A frame waits for the one before, which a
// busy machine may have delayed: two in one slot would share their outcome.
func sendInSlots(t *testing.T, pods []*pod, sites []*site) (sent [slotsNodes][slotsRounds]int64) {
	t.Helper()
	const slot, frame = int64(20 * time.Millisecond), slotsNodes * int64(20*time.Millisecond)
	var conns []net.Conn
	for _, p := range pods {
		p.do(t, func() error {
			c, err := net.Dial("udp4", "198.18.9.255:7000")
			if err == nil {
				conns = append(conns, c)
				t.Cleanup(func() { _ = c.Close() })
			}
			return err
		})
	}
	first := clock.Realtime()/frame*frame + 2*frame
	for number := range slotsRounds {
		for node, c := range conns {
			at := first + int64(2*number)*frame + int64(node)*slot + slot/2
			if err := clock.SleepUntil(context.Background(), time.Unix(0, at)); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the frame before is sent", func() bool { return hasSent(sites, node, number) })
			sent[node][number] = at // how late the test is is no delay of the network's
			if _, err := c.Write(binary.BigEndian.AppendUint16([]byte{byte(node)}, uint16(number))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sent
}

// listenStamped makes a socket whose datagrams have the time at which the kernel took them.
func (p *pod) listenStamped(t *testing.T, address string) *net.UDPConn {
	t.Helper()
	c := p.listenUDP(t, address)
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// readStamped takes what has arrived at a socket.
func readStamped(t *testing.T, c *net.UDPConn, take func(sender, number int, at int64)) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	body, control := make([]byte, 64), make([]byte, 128)
	err = raw.Control(func(fd uintptr) {
		for {
			length, controlLength, _, _, err := unix.Recvmsg(int(fd), body, control, unix.MSG_DONTWAIT)
			if err != nil {
				return // that was all
			}
			messages, err := unix.ParseSocketControlMessage(control[:controlLength])
			if err != nil || len(messages) != 1 || length != 3 {
				t.Errorf("%d bytes with control messages %+v, %v", length, messages, err)
				return
			}
			seconds, nanoseconds := binary.NativeEndian.Uint64(messages[0].Data), binary.NativeEndian.Uint64(messages[0].Data[8:])
			take(int(body[0]), int(binary.BigEndian.Uint16(body[1:])), int64(seconds)*1e9+int64(nanoseconds))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func medianOf(delays map[string]time.Duration) time.Duration {
	all := slices.Sorted(maps.Values(delays))
	return all[len(all)/2]
}

// Of the hosts one is 250 ms ahead and gains 80 ppm, the third one is as much behind. A frame is sent in the
// middle of a slot and arrives at the end of the node's next one, after half a slot and four slots.
func TestTheSameFramesArriveInTimeSlotsOnSeveralHostsAsOnOne(t *testing.T) {
	one := playSlots(t, skewedSites(t, 1)...)
	for _, hosts := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d hosts", hosts), func(t *testing.T) {
			sites := skewedSites(t, hosts)
			asOnOne(t, one, playSlots(t, sites...), sites)
		})
	}
}

func skewedSites(t *testing.T, count int) (sites []*site) {
	t.Helper()
	skews := []skewedClock{{}, {ahead: 250 * time.Millisecond, drift: 80e-6}, {ahead: -250 * time.Millisecond, drift: -80e-6}}
	for i := range count {
		sites = append(sites, newSite(t, fmt.Sprintf("host-%c", 'a'+i), &atomic.Bool{}, skews[i]))
	}
	return sites
}

func asOnOne(t *testing.T, one, several slotsTest, sites []*site) {
	t.Helper()
	if late := max(one.worst, several.worst); late > peers.LostAfter/2 {
		t.Skipf("the machine is too busy: frames were handed over up to %v late; hosts that stand still for so long are lost, and nothing is sent to them", late)
	}
	for _, of := range [][2]slotsTest{{one, several}, {several, one}} {
		for frame := range of[0].delays {
			if _, arrived := of[1].delays[frame]; !arrived {
				t.Errorf("%s arrives on %d or on one host; want on both", frame, len(sites))
			}
		}
	}
	var bound time.Duration
	for _, s := range sites {
		for _, other := range sites {
			bound = max(bound, s.sees(other.hosts.Host).Clock.Uncertainty)
		}
	}
	got, want := medianOf(several.delays), medianOf(one.delays)
	t.Logf("%d frames arrived on %d hosts, delays %v in the median, %v on one; clocks are known within %v; handed over up to %v late, %v on one; %d bursts came late, %d were of no use",
		len(several.delays), len(sites), got, want, bound, several.worst, one.worst, several.late, several.unusable)
	if most := bound + radio.LateThreshold; (got - want).Abs() > most {
		t.Errorf("the median of the delays is %v on %d hosts, %v on one; want them within %v: clocks, and what is not taken for late", got, len(sites), want, most)
	}
	if several.unusable > 0 {
		t.Errorf("%d bursts were of no use; want none", several.unusable)
	}
	if most := slotsNodes * (slotsNodes - 1) * slotsRounds; len(one.delays) < most/4 || len(one.delays) > most*9/10 {
		t.Errorf("on one host %d of %d frames arrive; want some lost and some not", len(one.delays), most)
	}
}
