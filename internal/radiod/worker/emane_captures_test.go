package worker

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// sendRaw sends broadcast frames of 100 bytes from an interface, as EMANE does.
func (p *pod) sendRaw(t *testing.T, from string, count int) {
	t.Helper()
	p.do(t, func() error {
		i, err := net.InterfaceByName(from)
		if err != nil {
			return err
		}
		socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		frame := make([]byte, 100)
		copy(frame, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 2, 0, 0, 0, 2, 0x88, 0xb5})
		for range count {
			if err := unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestANodesFramesAreCapturedAtItsEndOfEMANEsPair(t *testing.T) {
	b := newCaptureBed(t, runapi.PlannedCapture{Name: "run", Network: "vhf", Nodes: []string{"node-1"}})
	m, p := b.worker(), newEMANEPod(t)
	p.manager(m)
	p.appear(t)
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	n := configuredRadios(emaneNetwork("pod-1", "pod-2"))
	n.Spec.Experiment.UID = "run"
	n.Spec.Captures = []v1alpha1.RadioCapture{{Name: "run", Nodes: []string{"node-1"}}}
	set(t, m, n)
	p.play(t, n)
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	eventually(t, "both are attached", attachedIs(m, n, 2))
	one.sendDatagrams(t, "198.18.9.255:7000", 300)
	two.sendDatagrams(t, "198.18.9.255:7000", 50)
	p.sendRaw(t, "nem1", 200)
	ended := n.DeepCopy()
	ended.Generation, ended.Spec.Captures = n.Generation+1, nil
	set(t, m, ended) // as the operator does before the run is collected
	one.sendDatagrams(t, "198.18.9.255:7000", 10)
	for _, gap := range b.sealed().Gaps {
		if strings.HasPrefix(gap.What, "capture") {
			t.Errorf("gap %+v", gap)
		}
	}
	out, in := 0, 0
	for _, f := range tshark(t, b.archived(client.Capture{Name: "run", Network: "vhf", Node: "node-1"})) {
		if f.out && f.port == "7000" {
			out++
		} else if !f.out && f.length == 100 {
			in++
		}
	}
	if out != 300 || in != 200 {
		t.Errorf("%d datagrams out and %d frames in; want 300 and 200", out, in)
	}
}

// A radio that goes ends its captures, and another one of its node continues them.
func TestACaptureAtEMANEsPairEndsWithItsRadio(t *testing.T) {
	b := newCaptureBed(t, runapi.PlannedCapture{Name: "run", Network: "vhf", Nodes: []string{"node-1"}})
	m, p := b.worker(), newEMANEPod(t)
	p.manager(m)
	p.appear(t)
	one := newPod(t, "pod-1")
	n := configuredRadios(emaneNetwork("pod-1"))
	n.Spec.Experiment.UID, n.Spec.Captures = "run", []v1alpha1.RadioCapture{{Name: "run"}}
	set(t, m, n)
	p.play(t, n)
	for range 2 {
		one.attach(t, m, "vhf")
		eventually(t, "its radio is beside EMANE", func() bool { return p.has(t, "nem1") && p.link(t, "nem1").Attrs().Flags&net.FlagUp != 0 })
		one.sendDatagrams(t, "198.18.9.255:7000", 20)
		if answer := m.Serve(one.request("DEL", "vhf"), nil); answer.Error != "" {
			t.Fatal(answer.Error)
		}
	}
	if err := m.RemoveNetwork(string(n.UID)); err != nil {
		t.Fatal(err)
	}
	b.sealed()
	seen := 0
	for _, f := range tshark(t, b.archived(client.Capture{Name: "run", Network: "vhf", Node: "node-1"})) {
		if f.port == "7000" {
			seen++
		}
	}
	if seen != 40 {
		t.Errorf("%d datagrams; want 40 of two attachments", seen)
	}
}
