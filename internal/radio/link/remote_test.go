package link_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/radiotest"
)

// remoteHost records shipments to it.
type remoteHost struct{ shipped []radio.Shipment }

func (h *remoteHost) Ship(s *radio.Shipment) {
	c := *s
	c.Receivers, c.Data = slices.Clone(s.Receivers), bytes.Clone(s.Data)
	h.shipped = append(h.shipped, c)
}

// distributedBed is a bed of one node here, and others by name and group on two other hosts.
func distributedBed(t *testing.T, config link.Config) (b *bed, first, second *remoteHost) {
	t.Helper()
	b = newBed(t, 1, config)
	first, second = &remoteHost{}, &remoteHost{}
	for nem, host := range map[int]*remoteHost{2: first, 3: first, 4: second} {
		group := "near"
		if nem == 3 {
			group = "far"
		}
		mac := radio.MAC(0x020200000000 + nem)
		if _, err := b.Network.Attach(radio.PortOptions{Name: group + "-node", Group: group, NEM: nem, MAC: mac, Host: host}); err != nil {
			t.Fatal(err)
		}
	}
	return b, first, second
}

// shipped waits for a number of transmissions to a host, and returns them.
func (b *bed) shipped(t *testing.T, h *remoteHost, want int) (all []radio.Shipment) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		b.Network.Do(func(*radio.Network, radio.Model) { all = slices.Clone(h.shipped) })
		if len(all) == want {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d transmissions were shipped; want %d: %+v", len(all), want, all)
		}
	}
}

func TestABroadcastGoesOnceToEachOtherHost(t *testing.T) {
	const delay = 30 * time.Millisecond
	b, first, second := distributedBed(t, link.Config{Default: link.Parameters{Delay: delay}})
	if err := b.Nodes[0].Send(b.Nodes[0].Frame(radiotest.Broadcast, 1, 200)); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*remoteHost{first, second} {
		s := b.shipped(t, h, 1)[0]
		if s.Source != 1 || len(s.Receivers) != 0 || s.Due-s.Sent != int64(delay) || len(s.Data) != 200 {
			t.Errorf("shipped %+v; want 200 bytes of 1 for all, due after %v", s, delay)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); b.Network.Snapshot(false)[0].Released == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	b.Conserved(t)
	if c := b.Network.Snapshot(false)[0]; c.Released != 1 || c.Drops[radio.NoReceiver] != 0 {
		t.Errorf("the sender counts %+v; want one released frame", c.Counters)
	}
}

func TestLinksOfTheirOwnNameTheirReceivers(t *testing.T) {
	b, first, second := distributedBed(t, link.Config{Default: link.Parameters{Delay: time.Millisecond},
		Links: []link.Link{{From: link.Everybody, To: "far", Parameters: link.Parameters{Delay: time.Second}}}})
	if err := b.Nodes[0].Send(b.Nodes[0].Frame(radiotest.Broadcast, 1, 100)); err != nil {
		t.Fatal(err)
	}
	b.shipped(t, second, 1)
	receivers := map[uint16]int64{}
	for _, s := range b.shipped(t, first, 2) {
		if len(s.Receivers) != 1 {
			t.Fatalf("shipped for %v; want one receiver", s.Receivers)
		}
		receivers[s.Receivers[0]] = s.Due - s.Sent
	}
	if receivers[2] != int64(time.Millisecond) || receivers[3] != int64(time.Second) {
		t.Errorf("due after %v; want 1 ms for 2 and 1 s for 3", receivers)
	}
}

func TestATransmissionOfAnotherHostReachesItsReceiversAndCountsItsLateness(t *testing.T) {
	b, _, _ := distributedBed(t, link.Config{})
	frame := b.Nodes[0].Frame(b.Nodes[0].MAC, 7, 100)
	frame[11] = 2 // from the node elsewhere
	past := int64(1)
	b.Network.ReceiveShipment(&radio.Shipment{Source: 2, Receivers: []uint16{1}, Sent: past, Due: past, Bytes: len(frame), Data: frame})
	b.Network.ReceiveShipment(&radio.Shipment{Source: 9, Due: past, Bytes: len(frame), Data: frame})
	if r, ok, err := b.Nodes[0].Receive(10 * time.Second); err != nil || !ok || r.Sequence != 7 {
		t.Fatalf("received %+v, %v, %v; want frame 7", r, ok, err)
	}
	c := b.Network.Snapshot(false)[0]
	if c.FramesReceived != 1 || c.LateReleases != 1 || c.Released != 0 {
		t.Errorf("counted %+v; want one frame received, and late", c.Counters)
	}
	if b.Network.UnknownSources() != 1 {
		t.Errorf("%d transmissions of unknown sources; want 1", b.Network.UnknownSources())
	}
}
