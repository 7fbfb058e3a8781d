package capturefilter

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/testtool"
)

// filters that are understood, and mean what tcpdump means by them.
var filters = []string{
	"udp port 698", "host 198.18.0.1", "tcp", "udp", "icmp", "arp", "ip", "ip6", "icmp6", "igmp", "sctp", "pim", "rarp",
	"net 198.18.0.0/24", "src net 198.18.0.0/15", "net 198.18", "net 10", "net 198.18.0.0 mask 255.255.0.0", "dst net 0.0.0.0/0",
	"ether broadcast", "broadcast", "multicast", "ether multicast", "ip multicast", "ip6 multicast",
	"udp and not port 5353", "tcp port 1883 or udp port 1883", "port 1883", "portrange 1000-2000", "udp portrange 698-700",
	"src port 698", "dst port 698", "src or dst port 698", "src and dst port 698", "tcp src portrange 1-1024",
	"src host 198.18.0.1", "dst 198.18.0.2", "src net 198.18.0.0/30", "arp host 198.18.0.1", "ip host 198.18.0.1", "ip src 198.18.0.1",
	"host 198.18.0.1 or 198.18.0.2", "host 198.18.0.1 and 198.18.0.2", "port 698 or 1883", "not host 198.18.0.1 and 198.18.0.2",
	"port (698 or 1883)", "tcp port (1883 or 8883) and host 198.18.0.1", "src host (198.18.0.1 or 198.18.0.3)",
	"udp port 698 or tcp and host 198.18.0.1", "tcp or udp and port 698", "not (udp or tcp)", "!udp", "! ( udp port 698 || icmp ) && ip",
	"not not arp", "not udp or arp", "arp or icmp and host 198.18.0.1",
	"ether host 02:02:00:00:00:01", "ether src 02:02:00:00:00:02", "ether dst host 02:02:00:00:00:01", "ether proto 0x88b5",
	`ether proto \arp`, "ip proto 89", `ip proto \udp`, "ip6 proto 17", "ip proto 17 and not port 698",
	"less 80", "greater 80", "greater 60 and less 90 and udp", "less 0x40",
	"host 2001:db8::1", "ip6 host 2001:db8::2", "net 2001:db8::/32", "src net fe80::/10", "ip6 and udp port 698", "ip6 net 2001:db8::/64 and tcp",
	"host 198.18.0.1 and udp port 698 and not ether broadcast",
}

func TestFiltersMeanWhatTcpdumpMeans(t *testing.T) {
	tcpdump := testtool.Need(t, "tcpdump")
	// The seed changes with each execution on purpose, and failures report it.
	seed := rand.Uint64()
	frames := randomFrames(rand.New(rand.NewPCG(seed, 0)), 4000)
	file := filepath.Join(t.TempDir(), "frames.pcapng")
	writeCapture(t, file, frames)
	for _, text := range filters {
		t.Run(text, func(t *testing.T) {
			filter, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			want := tcpdumpMatches(t, tcpdump, file, text)
			matches := 0
			for i, f := range frames {
				got := filter.Match(f, len(f))
				if got != want[int64(i)] {
					t.Fatalf("seed %d: frame %d % x: match %v, tcpdump says %v", seed, i, f, got, want[int64(i)])
				}
				if got {
					matches++
				}
			}
			if matches == 0 {
				t.Errorf("seed %d: none of %d frames matched: the comparison says nothing", seed, len(frames))
			}
		})
	}
}

// tcpdumpMatches returns the indexes of the frames that tcpdump keeps; each frame's time is its index.
func tcpdumpMatches(t *testing.T, tcpdump, file, filter string) map[int64]bool {
	t.Helper()
	command := exec.Command(tcpdump, "-r", file, "-w", "-", filter)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		t.Fatalf("tcpdump: %v: %s", err, problems.String())
	}
	kept := map[int64]bool{}
	// tcpdump writes the classic format: a file header of 24 bytes, then records with seconds first.
	for rest := out.Bytes()[24:]; len(rest) >= 16; {
		kept[int64(binary.LittleEndian.Uint32(rest))] = true
		rest = rest[16+binary.LittleEndian.Uint32(rest[8:]):]
	}
	return kept
}

func writeCapture(t *testing.T, path string, frames [][]byte) {
	t.Helper()
	content := pcapng.AppendSection(nil, "radio0", "frames of a test")
	for i, f := range frames {
		content = pcapng.AppendPacket(content, int64(i)*1e9, true, len(f), f)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// randomFrames are frames near to what the filters ask for, some of them cut off.
func randomFrames(r *rand.Rand, count int) [][]byte {
	pick := func(values ...uint16) uint16 { return values[r.IntN(len(values))] }
	v4 := func() []byte {
		return [][]byte{{198, 18, 0, byte(1 + r.IntN(4))}, {198, 19, 1, 1}, {10, 0, 0, 1}, {224, 0, 0, 22}, {255, 255, 255, 255}}[r.IntN(5)]
	}
	v6 := func() []byte {
		prefix := [][]byte{{0x20, 0x01, 0x0d, 0xb8}, {0xfe, 0x80, 0, 0}, {0xff, 2, 0, 0}}[r.IntN(3)]
		return append(append(bytes.Clone(prefix), make([]byte, 11)...), byte(1+r.IntN(3)))
	}
	transport := func() []byte {
		b := binary.BigEndian.AppendUint16(nil, pick(698, 1883, 8883, 5353, 1500, 700, 53))
		b = binary.BigEndian.AppendUint16(b, pick(698, 1883, 8883, 5353, 1500, 700, 53))
		return append(b, make([]byte, 4+r.IntN(60))...)
	}
	protocol := func() byte { return []byte{1, 2, 6, 6, 17, 17, 17, 58, 89, 103, 132}[r.IntN(11)] }
	frames := make([][]byte, count)
	for i := range frames {
		address := func() []byte {
			return [][]byte{{2, 2, 0, 0, 0, 1}, {2, 2, 0, 0, 0, 2}, {255, 255, 255, 255, 255, 255}, {1, 0, 94, 0, 0, 22}}[r.IntN(4)]
		}
		f := append(bytes.Clone(address()), address()...)
		whole := 0 // what is not cut off
		ether := pick(etherIP, etherIP, etherIP, etherIP6, etherIP6, etherARP, etherRARP, 0x88b5, 0x0100)
		f = binary.BigEndian.AppendUint16(f, ether)
		switch ether {
		case etherIP:
			words := 5 + r.IntN(3)
			header := make([]byte, 4*words)
			header[0] = 0x40 | byte(words)
			if r.IntN(5) == 0 {
				binary.BigEndian.PutUint16(header[6:], pick(0x2000, 0x2001, 185, 0x4000))
			}
			header[9] = protocol()
			copy(header[12:], v4())
			copy(header[16:], v4())
			whole = len(f) + len(header)
			f = append(append(f, header...), transport()...)
		case etherIP6:
			header := make([]byte, ip6Header)
			header[6] = protocol()
			copy(header[8:], v6())
			copy(header[24:], v6())
			if r.IntN(4) == 0 {
				header[6] = ip6Fragment
				header = append(header, protocol(), 0, 0, 0, 0, 0, 0, 0)
			}
			whole = len(f) + len(header)
			f = append(append(f, header...), transport()...)
		case etherARP, etherRARP:
			body := make([]byte, 28)
			copy(body[14:], v4())
			copy(body[24:], v4())
			f = append(f, body...)
		default:
			f = append(f, make([]byte, r.IntN(100))...)
		}
		if whole > 0 && r.IntN(10) == 0 {
			// Amid the ports libpcap's optimiser decides.
			f = f[:whole+[]int{0, 4, 6}[r.IntN(3)]]
		}
		frames[i] = f
	}
	return frames
}

func TestFiltersThatAreNotUnderstoodAreRefused(t *testing.T) {
	for _, text := range []string{
		"nonsense", "udp port", "port http", "host example.org", "port 65536", "port -1", "portrange 5", "portrange 9-1", "tcp host 198.18.0.1",
		"net 198.18.0.1/24", "net 198.18.0.0/33", "net 1.2.3.4.5", "host 198.18.0", "host 198.18.0.0/24", "ip host ::1", "ip6 host 198.18.0.1",
		"ip port 5", "tcp[13] & 2 != 0", "ether[0] & 1 = 0", "len > 5", "vlan 5", "vlan and udp", "mpls", "gateway 1.2.3.4", "ip broadcast",
		"udp and", "and udp", "(udp", "udp)", "()", "udp tcp", "udp or 698", "port 698 and not 53", "(port 698) or 53", "80", "tcp 80",
		"ether proto 5", "ether proto 0x809b", "proto 17", "ip proto ospf", "ip protochain 6", "inbound", "src udp", "port 010", "port 0x1ffff",
		"less", "less x", "host (", "host (198.18.0.1", "host (198.18.0.1 198.18.0.2)", "ether host 02-02-00-00-00-01", "ether host 02:02",
		"net 198.18.0.1 mask 255.255.255.0", "net 198.18.0.0 mask", "198.18.0.1", "ip 198.18.0.1", "198.18.0.0/30", "src 198.18.0.0/30", "wlan host 02:02:00:00:00:01", "src", "udp &", "udp | tcp",
		strings.Repeat("not ", 200) + "udp", strings.Repeat("(", 100) + "udp" + strings.Repeat(")", 100), strings.Repeat("udp or ", 200) + "udp",
	} {
		if err := Check(text); err == nil {
			t.Errorf("%.60q is taken", text)
		}
	}
	if err := Check("  "); err != nil {
		t.Errorf("a filter of nothing: %v", err)
	}
}

// FuzzFilter looks for texts that break the parser, and, where tcpdump is there, for ones that it understands
// differently.
func FuzzFilter(f *testing.F) {
	for _, text := range filters {
		f.Add(text)
	}
	tcpdump, _ := exec.LookPath("tcpdump")
	frames := randomFrames(rand.New(rand.NewPCG(1, 2)), 300)
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := Parse(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "filter ") {
				t.Errorf("error %q does not name the filter", err)
			}
			return
		}
		for _, frame := range frames {
			filter.Match(frame, len(frame))
		}
		// A name in tcpdump's place could be looked up, and a zero byte cannot be handed over.
		if tcpdump == "" || filter == nil || os.Getenv("VIGNETTE_FUZZ_TCPDUMP") == "" {
			return
		}
		file := filepath.Join(t.TempDir(), "frames.pcapng")
		writeCapture(t, file, frames)
		want := tcpdumpMatches(t, tcpdump, file, text)
		for i, frame := range frames {
			if got := filter.Match(frame, len(frame)); got != want[int64(i)] {
				t.Fatalf("%q: frame %s: match %v, tcpdump says %v", text, strconv.Itoa(i), got, want[int64(i)])
			}
		}
	})
}
