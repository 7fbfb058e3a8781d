package mgen

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestARunGoesOnFromAnyOffset(t *testing.T) {
	const text = `TTL 3
0.0 LISTEN UDP 5000
0.0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [1 100]
1.0 ON 2 UDP DST 10.0.0.1/5001 PERIODIC [1 100] COUNT 5
2.0 MOD 1 PERIODIC [2 200] TOS 16
3.0 OFF 1
4.0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [3 100]
5.0 MOD 1 COUNT 4
9.0 IGNORE UDP 5000
`
	cases := map[string]struct {
		offset time.Duration
		starts int
		again  bool
		want   string
	}{
		"at the beginning each life of a flow has its own number": {0, 0, false, `TTL 3
0.0 LISTEN UDP 5000
0.0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [1 100]
1.0 ON 2 UDP DST 10.0.0.1/5001 PERIODIC [1 100] COUNT 5
2.0 MOD 1 PERIODIC [2 200] TOS 16
3.0 OFF 1
4.0 ON 65537 UDP DST 10.0.0.1/5000 PERIODIC [3 100]
5.0 MOD 65537 COUNT 4
9.0 IGNORE UDP 5000
`},
		"a little later, what was due is done at once": {100 * time.Millisecond, 0, false, `TTL 3
0.0 LISTEN UDP 5000
0.0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [1 100]
0.9 ON 2 UDP DST 10.0.0.1/5001 PERIODIC [1 100] COUNT 5
1.9 MOD 1 PERIODIC [2 200] TOS 16
2.9 OFF 1
3.9 ON 65537 UDP DST 10.0.0.1/5000 PERIODIC [3 100]
4.9 MOD 65537 COUNT 4
8.9 IGNORE UDP 5000
`},
		"after a restart flows are as they were, with new numbers, and none with a COUNT begins again": {2500 * time.Millisecond, 1, true, `TTL 3
0.0 LISTEN UDP 5000
0.0 ON 16777217 UDP DST 10.0.0.1/5000 PERIODIC [2 200] TOS 16
0.5 OFF 16777217
1.5 ON 16842753 UDP DST 10.0.0.1/5000 PERIODIC [3 100]
2.5 MOD 16842753 COUNT 4
6.5 IGNORE UDP 5000
`},
		"after another start by the timeline all begins anew, with new numbers": {1500 * time.Millisecond, 1, false, `TTL 3
0.0 LISTEN UDP 5000
0.0 ON 16777217 UDP DST 10.0.0.1/5000 PERIODIC [1 100]
0.0 ON 16777218 UDP DST 10.0.0.1/5001 PERIODIC [1 100] COUNT 5
0.5 MOD 16777217 PERIODIC [2 200] TOS 16
1.5 OFF 16777217
2.5 ON 16842753 UDP DST 10.0.0.1/5000 PERIODIC [3 100]
3.5 MOD 16842753 COUNT 4
7.5 IGNORE UDP 5000
`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.Run(c.offset, c.starts, c.again).String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(text, s.String()); diff != "" {
				t.Errorf("the script itself was changed (-before +after)\n%s", diff)
			}
		})
	}
}

func TestAfterARestartAFlowCountsAsItsLastMODSays(t *testing.T) {
	for text, want := range map[string]string{
		"0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [1 100] COUNT 5\n1 MOD 1 COUNT -1\n3 OFF 1": "0.0 ON 16777217 UDP DST 10.0.0.1/5000 PERIODIC [1 100] COUNT -1\n1.0 OFF 16777217\n",
		"0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [1 100]\n1 MOD 1 COUNT 5\n3 OFF 1":          "",
		"0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [1 100] COUNT 5\n3 MOD 1 COUNT -1":          "",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Run(2*time.Second, 1, true).String(); got != want {
			t.Errorf("%s\nbecomes\n%s\nwant\n%s", text, got, want)
		}
	}
}

func TestIDsSayNodeFlowLifeAndSequence(t *testing.T) {
	for want, got := range map[string]string{
		"veh-1/7_12":     MessageID("veh-1", WireFlow(7, 0, 0), 12),
		"veh-1/7.1_0":    MessageID("veh-1", WireFlow(7, 1, 0), 0),
		"veh-1/7.513_12": MessageID("veh-1", WireFlow(7, 1, 2), 12),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAReceiverHearsThePortsThatItListensToAndTheGroupsThatItJoins(t *testing.T) {
	sender, err := Parse(`0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [1 100]
1 MOD 1 DST 10.0.0.2/5000
0 ON 2 TCP DST 10.0.0.1/5000 PERIODIC [1 100]
0 ON 3 UDP DST 239.1.1.1/5001 PERIODIC [1 100]
0 ON 4 UDP DST 239.1.1.2/5009 PERIODIC [1 100]
0 ON 5 UDP DST 10.0.0.255/5000 PERIODIC [1 100]`)
	if err != nil {
		t.Fatal(err)
	}
	receiver, err := Parse("0 LISTEN UDP 5000-5001\n5 LISTEN TCP 6000\n0 JOIN 239.1.1.1\n0 JOIN 239.1.1.2 PORT 5009")
	if err != nil {
		t.Fatal(err)
	}
	var topics []string
	for _, of := range sender.Destinations() {
		topics = append(topics, of...)
	}
	slices.Sort(topics)
	got := receiver.Receives(topics, []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.255")})
	want := []string{"mgen/udp/10.0.0.1/5000", "mgen/udp/10.0.0.255/5000", "mgen/udp/239.1.1.1/5001", "mgen/udp/239.1.1.2/5009"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAReceiversCheckCostsNoMoreForGroupsAndPortsThanTheirSum(t *testing.T) {
	var text strings.Builder
	for first := 1000; first < 1000+maxScriptPorts; first += maxLinePorts {
		fmt.Fprintf(&text, "0 LISTEN UDP %d-%d\n", first, first+maxLinePorts-1)
	}
	groups := MaxEvents - maxScriptPorts/maxLinePorts
	for i := range groups {
		fmt.Fprintf(&text, "0 JOIN 239.1.%d.%d\n", i>>8, i&0xff)
	}
	receiver, err := Parse(text.String())
	if err != nil {
		t.Fatal(err)
	}
	heard := []string{"mgen/udp/239.1.2.3/1000", "mgen/udp/10.0.0.1/3047"}
	own := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	allocations := testing.AllocsPerRun(1, func() {
		if got := receiver.Receives(append([]string{"mgen/udp/239.1.2.3/999"}, heard...), own); !slices.Equal(got, heard) {
			t.Errorf("heard %v; want %v", got, heard)
		}
	})
	if most := float64(4 * (maxScriptPorts + groups)); allocations > most {
		t.Errorf("%.0f allocations for %d ports and %d groups; want %.0f at most", allocations, maxScriptPorts, groups, most)
	}
}

func TestWhatMgenCannotRunForAnAppIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		"0 ON 1 DST a/5 PERIODIC [1 100]":           "flow 1 has no protocol",
		"0 ON 1 UDP PERIODIC [1 100]":               "flow 1 has no destination: want DST",
		"0 ON 1 SINK DST a/5 PERIODIC [1 100]":      "SINK is not taken",
		"0 ON 70000 UDP DST a/5 PERIODIC [1 100]":   "flow 70000: want a number up to 65535",
		"0 ON 1 UDP DST a/5 CLONE [tcpdump a.pcap]": "CLONE is not taken",
		"\n\n0 ON 1 SINK DST a/5 PERIODIC [1 100]":  "line 3: ON:",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CheckRun(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want …%s…", text, err, want)
		}
	}
}

func TestNoFlowSendsFromTheEndOn(t *testing.T) {
	const text = `TTL 3
0.0 LISTEN UDP 5000
0.0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [1 100]
1.0 ON 2 UDP DST 10.0.0.1/5001 PERIODIC [1 100]
2.0 MOD 1 PERIODIC [2 200]
3.0 OFF 1
4.0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [3 100]
9.0 IGNORE UDP 5000
`
	for end, want := range map[time.Duration]string{
		10 * time.Second: text + "10.0 OFF 1\n10.0 OFF 2\n",
		4 * time.Second: `TTL 3
0.0 LISTEN UDP 5000
0.0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [1 100]
1.0 ON 2 UDP DST 10.0.0.1/5001 PERIODIC [1 100]
2.0 MOD 1 PERIODIC [2 200]
3.0 OFF 1
4.0 OFF 2
9.0 IGNORE UDP 5000
`,
		2500 * time.Millisecond: `TTL 3
0.0 LISTEN UDP 5000
0.0 ON 1 UDP DST 10.0.0.1/5000 PERIODIC [1 100]
1.0 ON 2 UDP DST 10.0.0.1/5001 PERIODIC [1 100]
2.0 MOD 1 PERIODIC [2 200]
2.5 OFF 1
2.5 OFF 2
9.0 IGNORE UDP 5000
`,
		-time.Second: "TTL 3\n0.0 LISTEN UDP 5000\n9.0 IGNORE UDP 5000\n",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.Until(end).String()); diff != "" {
			t.Errorf("until %v (-want +got)\n%s", end, diff)
		}
		if diff := cmp.Diff(text, s.String()); diff != "" {
			t.Errorf("the script itself was changed (-before +after)\n%s", diff)
		}
	}
}
