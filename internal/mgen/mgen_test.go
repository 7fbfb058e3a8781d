package mgen

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// example is the script of the guide's section 2.2, less what Debian's mgen refuses.
const example = `# MGEN script begins here
# Originate two UDP flows
0.0 ON 1 UDP SRC 5001 DST 127.0.0.1/5001 PERIODIC [1 1024]
0.0 ON 2 UDP SRC 5002 DST 224.225.1.2/5002 PERIODIC [1 512]

0.0 ON 3 TCP DST 192.168.1.102/5000 \
  PERIODIC [1 1048576] COUNT 1
4.0 MOD 2 POISSON [10 1024]
TTL 3
0.0 LISTEN UDP 5000-5002,6000,6003
0.0 JOIN 224.225.1.2 INTERFACE eth0
5.0 LEAVE 224.225.1.2 INTERFACE eth0
6.0 IGNORE UDP 5000-5001
10.0 OFF 1
110.0 OFF 2
`

func TestTheGuidesExampleIsReadWhole(t *testing.T) {
	s, err := Parse(example)
	if err != nil {
		t.Fatal(err)
	}
	want := `TTL 3
0.0 ON 1 UDP SRC 5001 DST 127.0.0.1/5001 PERIODIC [1 1024]
0.0 ON 2 UDP SRC 5002 DST 224.225.1.2/5002 PERIODIC [1 512]
0.0 ON 3 TCP DST 192.168.1.102/5000 PERIODIC [1 1048576] COUNT 1
0.0 LISTEN UDP 5000-5002,6000,6003
0.0 JOIN 224.225.1.2 INTERFACE eth0
4.0 MOD 2 POISSON [10 1024]
5.0 LEAVE 224.225.1.2 INTERFACE eth0
6.0 IGNORE UDP 5000-5001
10.0 OFF 1
110.0 OFF 2
`
	if diff := cmp.Diff(want, s.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if s.Events[2].Line != 6 {
		t.Errorf("the continued line is line %d, want its first, 6", s.Events[2].Line)
	}
}

func TestAScriptMayHaveAByteOrderMarkAndLineEndsOfWindows(t *testing.T) {
	s, err := Parse("\ufeff# from an editor\r\n1.0 ON 1 UDP DST a/5 \\\r\n PERIODIC [1 100]\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "1.0 ON 1 UDP DST a/5 PERIODIC [1 100]\n"; s.String() != want {
		t.Errorf("it reads %q; want %q", s.String(), want)
	}
}

func TestEveryOptionIsRead(t *testing.T) {
	cases := map[string]string{
		"lower case and short words": "on 1 udp dst veh-1/5000 per [1.0 100]",
		"a burst within a burst":     "1.5 ON 1 UDP DST 10.0.0.1/5 BURST [RANDOM 10 BURST [REG 1 JITTER [10 64 .5] FIX 0.5] EXP 5.0]",
		"a clone":                    "0 ON 1 UDP DST 10.0.0.1/5 CLONE [tcpdump file.pcap [0]]",
		"all options":                "0 ON 1 UDP CONNECT SRC 1 DST 10.0.0.1/5 POISSON [.5 28] COUNT 3 SEQUENCE 4 DATA [0a0B] TOS 0x10 TTL 2 TXBUFFER 9 INTERFACE vhf QUEUE -1 BROADCAST OFF LABEL 0x10",
		"joins":                      "0 JOIN 239.1.2.3 SRC hq INTERFACE vhf PORT 5000-5002",
		"brackets without spaces":    "0 ON 1 TCP DST a/1 PERIODIC[1 100]COUNT 2",
		"globals":                    "START 1:02:03.5GMT\nOFFSET 1.5\nTOS 0x10\nRXBUFFER 100\nINTERFACE vhf\nQUEUE 3\nBROADCAST on",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			checkRoundTrip(t, s)
		})
	}
}

func checkRoundTrip(t *testing.T, s *Script) {
	t.Helper()
	again, err := Parse(s.String())
	if err != nil {
		t.Fatalf("%v in\n%s", err, s)
	}
	for _, script := range []*Script{s, again} {
		for i := range script.Events {
			script.Events[i].Line = 0
		}
		for i := range script.Globals {
			script.Globals[i].Line = 0
		}
	}
	if diff := cmp.Diff(s, again); diff != "" {
		t.Errorf("written and read again (-before +after)\n%s", diff)
	}
}

func TestWhatIsWrongIsSaidWithItsLineAndWhatWouldBeRight(t *testing.T) {
	cases := map[string]struct {
		text, want string
		line       int
	}{
		"an unknown global command":         {"\nFOO bar", `"FOO" is no event and no global command: want ON, MOD`, 2},
		"a command that writes files":       {"OUTPUT x.drc", "OUTPUT is not taken: events go to the message log", 1},
		"an included script":                {"INPUT x.mgn", "INPUT is not taken: put the other script's lines into this one", 1},
		"an unknown event":                  {"0.0 STOP 1", `"STOP" is no event: want ON, MOD`, 1},
		"an unknown option":                 {"0.0 ON 1 UDP DTS 10.0.0.1/5 PERIODIC [1 100]", `"DTS" is no option of a flow: want UDP, TCP, DST`, 1},
		"no pattern":                        {"0.0 ON 1 UDP DST 10.0.0.1/5", "flow 1 has no pattern", 1},
		"a pattern without brackets":        {"0.0 ON 1 UDP DST 10.0.0.1/5 PERIODIC 1 100", `PERIODIC: "1" is where [ should be`, 1},
		"a pattern that does not end":       {"0.0 ON 1 UDP DST 10.0.0.1/5 PERIODIC [1 100", "ends where ] should be", 1},
		"a message that is too small":       {"0.0 ON 1 UDP DST 10.0.0.1/5 PERIODIC [1 20]", `size "20": want a number from 28`, 1},
		"a datagram that is too large":      {"0.0 ON 1 UDP DST 10.0.0.1/5 PERIODIC [1 9000]", "size 9000: a UDP message may have 8192 bytes", 1},
		"one that MOD makes too large":      {"0.0 ON 1 UDP DST 10.0.0.1/5 PERIODIC [1 100]\n1 MOD 1 PERIODIC [1 9000]", "size 9000", 2},
		"a destination without a port":      {"0.0 ON 1 UDP DST 10.0.0.1 PERIODIC [1 100]", "veh-1/5000", 1},
		"MOD of a flow that is not on":      {"0.0 ON 1 UDP DST a/5 PERIODIC [1 100]\n# \n1.0 MOD 2 COUNT 3", "flow 2 is not on at 1.0", 3},
		"OFF before ON":                     {"1.0 ON 1 UDP DST a/5 PERIODIC [1 100]\n0.5 OFF 1", "flow 1 is not on at 0.5", 2},
		"ON twice":                          {"0 ON 1 UDP DST a/5 PERIODIC [1 100]\n1 ON 1 UDP DST a/5 PERIODIC [1 100]", "flow 1 is on since line 1", 2},
		"MOD of the protocol":               {"0 ON 1 UDP DST a/5 PERIODIC [1 100]\n1 MOD 1 TCP", "a flow's protocol cannot be changed", 2},
		"a group that is none":              {"0 JOIN 10.0.0.1", "want an IPv4 multicast address", 1},
		"ports with spaces":                 {"0 LISTEN UDP 5000, 5001", "want numbers from 1 to 65535 and ranges, without spaces", 1},
		"too many ports":                    {"0 LISTEN UDP 1-65535", "want 256 in one line at most", 1},
		"too many ports in all lines":       {strings.Repeat("0 LISTEN UDP 1000-1255\n", 9), "LISTEN: the script has 2304 ports up to this line: want 2048 at most", 9},
		"too many ports of groups":          {strings.Repeat("0 JOIN 239.1.1.1 PORT 1000-1255\n", 9), "JOIN: the script has 2304 ports up to this line: want 2048 at most", 9},
		"a comment behind a command":        {"TTL 3 # three", "comments lines of their own", 1},
		"a line that continues nowhere":     {`TTL 3 \`, "nothing follows", 1},
		"jitter of more than half":          {"0 ON 1 UDP DST a/5 JITTER [1 100 .6]", `jitter ".6": want a number from 0 to 0.5`, 1},
		"a burst of something else":         {"0 ON 1 UDP DST a/5 BURST [REGULAR 1 NOISE [1 100] FIXED 1]", `"NOISE" is no pattern`, 1},
		"an option that mgen refuses":       {"0 ON 1 UDP DST a/5 PERIODIC [1 100] RXBUFFER 5", "RXBUFFER is not taken as an option of a flow", 1},
		"a rate that is infinite":           {"0 ON 1 UDP DST a/5 PERIODIC [inf 100]", `rate "inf": want a number`, 1},
		"something behind the end":          {"0 OFF 1 2", `"2" is too much`, 1},
		"a value that a global one has not": {"TTL 0", `TTL "0": want a number from 1 to 255`, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.text)
			if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Line != c.line || !strings.Contains(wrong.Reason, c.want) {
				t.Errorf("got %v; want line %d: …%s…", err, c.line, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("0 ON 1 UDP DST a/5 BURST [RAN 1 JIT [1 100 .1] EXP .5] COUNT 3\n1 MOD 1 PERIODIC [2 200]\nTOS 0x10")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		checkRoundTrip(t, s)
		schedule, err := NewSchedule(s, 1)
		if err != nil {
			return
		}
		last := time.Duration(0)
		for k := range int64(50) {
			m, ok := schedule.Message(k + 1)
			if !ok {
				break
			}
			if m.At < last {
				t.Fatalf("message %d is due at %s, before the one before it, at %s", k+1, m.At, last)
			}
			last = m.At
		}
	})
}

// messages of a script up to a number.
func messages(t *testing.T, text string, seed, limit int64) []Message {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := NewSchedule(s, seed)
	if err != nil {
		t.Fatal(err)
	}
	var all []Message
	for k := int64(1); k <= limit; k++ {
		m, ok := schedule.Message(k)
		if !ok {
			break
		}
		all = append(all, m)
	}
	return all
}

func TestSchedulesAreAsTheGuideAndDebiansMgenHaveThem(t *testing.T) {
	at := func(bytes int, seconds ...float64) (m []Message) {
		for _, s := range seconds {
			m = append(m, Message{At: time.Duration(math.Round(s * 1e9)), Flow: 1, Bytes: bytes})
		}
		return m
	}
	cases := map[string]struct {
		text string
		want []Message
	}{
		"periodic, until OFF":                            {"0.5 ON 1 PERIODIC [4 100]\n1.5 OFF 1", at(100, 0.5, 0.75, 1, 1.25)},
		"a third of a second does not add up errors":     {"0 ON 1 PERIODIC [3 100] COUNT 7", at(100, 0, 1./3, 2./3, 1, 4./3, 5./3, 2)},
		"MOD leaves the message that is due where it is": {"0 ON 1 PERIODIC [1 100] \n0.3 MOD 1 PERIODIC [2 200]\n2.1 OFF 1", append(at(100, 0), at(200, 1, 1.5, 2)...)},
		"MOD to a slower rate":                           {"0 ON 1 PERIODIC [2 100] \n0.7 MOD 1 PERIODIC [0.5 100]\n4 OFF 1", at(100, 0, 0.5, 1, 3)},
		"COUNT of MOD counts from there":                 {"0 ON 1 PERIODIC [2 100] \n1.2 MOD 1 COUNT 2", at(100, 0, 0.5, 1, 1.5, 2)},
		"COUNT 0 sends nothing":                          {"0 ON 1 PERIODIC [2 100] COUNT 0", nil},
		"regular bursts":                                 {"0 ON 1 BURST [REGULAR 1.5 PERIODIC [4 100] FIXED 0.5]\n3.1 OFF 1", at(100, 0, 0.25, 1.5, 1.75, 3)},
		"bursts longer than their interval":              {"0 ON 1 BURST [REGULAR 1 PERIODIC [2 100] FIXED 2]\n3 OFF 1", at(100, 0, 0.5, 1, 1.5, 2, 2.5)},
		"a flow that is turned on again":                 {"0 ON 1 PERIODIC [2 100]\n0.6 OFF 1\n2 ON 1 PERIODIC [2 200] COUNT 1", append(at(100, 0, 0.5), at(200, 2)...)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, messages(t, c.text, 1, 100)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestFlowsAreMergedInTheOrderOfTime(t *testing.T) {
	got := messages(t, "0 ON 1 PERIODIC [2 100]\n0.2 ON 2 PERIODIC [1 50]\n1.3 OFF 1\n1.3 OFF 2", 1, 100)
	flows := make([]uint32, len(got))
	for i, m := range got {
		flows[i] = m.Flow
	}
	if diff := cmp.Diff([]uint32{1, 2, 1, 1, 2}, flows); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnyMessageIsToldInAnyOrder(t *testing.T) {
	const text = "0 ON 1 POISSON [20 100]\n0 ON 2 BURST [RANDOM 1 JITTER [50 64 0.4] EXP 0.3]\n5 MOD 1 PERIODIC [7 300]"
	all := messages(t, text, 9, 300)
	script, _ := Parse(text)
	schedule, err := NewSchedule(script, 9)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		k := random.Int64N(300)
		if got, ok := schedule.Message(k + 1); !ok || got != all[k] {
			t.Fatalf("message %d is %+v, %v; in order it was %+v", k+1, got, ok, all[k])
		}
	}
	if other := messages(t, text, 10, 300); cmp.Equal(all, other) {
		t.Error("another seed gives the same times")
	}
}

func TestRandomPatternsHaveTheirRates(t *testing.T) {
	const n = 20000
	cases := map[string]struct {
		pattern string
		// mean and standard deviation of the gaps, seconds.
		mean, deviation float64
	}{
		"POISSON": {"POISSON [10 100]", 0.1, 0.1},
		"JITTER":  {"JITTER [10 100 0.4]", 0.1, 0.1 * 0.4 / math.Sqrt(3)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all := messages(t, "0 ON 1 "+c.pattern, 5, n+1)
			sum, squares := 0.0, 0.0
			for i := 1; i <= n; i++ {
				gap := (all[i].At - all[i-1].At).Seconds()
				sum += gap
				squares += (gap - c.mean) * (gap - c.mean)
				if name == "JITTER" && (gap < 0.06-1e-9 || gap > 0.14+1e-9) {
					t.Fatalf("a gap of %v s; want 0.06 to 0.14", gap)
				}
			}
			if mean := sum / n; math.Abs(mean-c.mean) > 5*c.deviation/math.Sqrt(n) {
				t.Errorf("gaps have a mean of %v s, want %v", mean, c.mean)
			}
			if deviation := math.Sqrt(squares / n); math.Abs(deviation/c.deviation-1) > 0.05 {
				t.Errorf("gaps have a standard deviation of %v s, want %v", deviation, c.deviation)
			}
		})
	}
}

func TestPatternsWithoutKnownTimesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"0 ON 1 CLONE [tcpdump a.pcap 0]":                     "CLONE is not taken",
		"0 ON 1 PERIODIC [-1 100]":                            "rate -1: want messages per second",
		"\n0 ON 1 BURST [REGULAR 1 PERIODIC [0 100] FIXED 1]": "line 2: ON: rate 0",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewSchedule(s, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want …%s…", text, err, want)
		}
	}
}
