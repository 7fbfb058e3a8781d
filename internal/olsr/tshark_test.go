package olsr_test

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/olsrtest"
	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/testcapture"
	"vignette.dev/vignette/internal/testtool"
)

// frame of a packet as it goes over a radio: Ethernet, IPv4, UDP to the group of MANET routers.
func frame(from netip.Addr, packet []byte) []byte {
	b := []byte{0x01, 0x00, 0x5e, 0, 0, 109, 2, 0, 0, 0, 0, 1, 8, 0}
	source, group := from.As4(), olsr.Group.As4()
	b = append(b, 0x45, 0xc0)
	b = binary.BigEndian.AppendUint16(b, uint16(28+len(packet)))
	b = append(b, 0, 0, 0, 0, 1, 17, 0, 0)
	b = append(append(b, source[:]...), group[:]...)
	for range 2 {
		b = binary.BigEndian.AppendUint16(b, olsr.Port)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(packet)))
	return append(append(b, 0, 0), packet...)
}

// capture of a network while it converges, with gateways and two media.
func capture(t *testing.T, metric olsr.Metric, topologies ...olsr.Topology) (file []byte, packets int) {
	media := [][]int{{0, 1}, {0}, {0}, {1}, {1}, {0, 1}, {0}, {0}, {1}, {0}}
	base := olsr.Config{Metric: metric, Topologies: topologies, Attached: []olsr.Attached{
		{Prefix: netip.MustParsePrefix("192.168.0.0/24")}, {Prefix: netip.MustParsePrefix("0.0.0.0/0"), Hops: 2},
	}}
	net, err := olsrtest.NewOn(media, 1, base, olsr.New)
	if err != nil {
		t.Fatal(err)
	}
	file = pcapng.AppendSection(nil, "r0", "test")
	net.Packets = func(node, iface int, packet []byte) {
		f := frame(net.Nodes[node].Config.Interfaces[iface].Address, packet)
		file = pcapng.AppendPacket(file, net.Now.UnixNano(), true, len(f), f)
		packets++
	}
	net.Random(1, 4)
	net.Run(30 * time.Second)
	net.Random(2, 4)
	net.Run(30 * time.Second)
	return file, packets
}

func TestTsharkFindsNothingMalformed(t *testing.T) {
	testtool.Need(t, "tshark")
	for name, c := range map[string]olsr.Config{
		"hop count": {}, "DAT": {Metric: olsr.DAT},
		"topologies": {Topologies: []olsr.Topology{{Type: 225, Metric: olsr.DAT}, {Type: 224}}},
	} {
		t.Run(name, func(t *testing.T) {
			file, packets := capture(t, c.Metric, c.Topologies...)
			path := filepath.Join(t.TempDir(), "olsr.pcapng")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			read := testcapture.Read(t, path, "-d", "udp.port==269,packetbb")
			testcapture.NoneOf(t, read, "Malformed", "malformed", "ERROR", "Expert Info (Error", "Expert Info (Warn")
			if got := strings.Count(read, "PacketBB"); got != packets || packets < 200 {
				t.Errorf("tshark dissects %d of %d packets", got, packets)
			}
			for _, want := range []string{"HELLO", "TC", "MPR", "10.0.0.1"} {
				if !strings.Contains(read, want) {
					t.Errorf("tshark finds no %s", want)
				}
			}
		})
	}
}
