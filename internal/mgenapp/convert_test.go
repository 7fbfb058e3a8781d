package mgenapp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/messagelog"
)

func testConverter(t *testing.T, now string) (*converter, *[]string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, now)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	c := newConverter(Config{Instance: "hq/voice", Node: "hq", Nodes: map[string]string{"198.18.0.1": "hq", "198.18.0.2": "veh-1"}},
		func(text string) { told = append(told, text) })
	c.now = func() time.Time { return at }
	return c, &told
}

func records(t *testing.T, c *converter, log string) (all []messagelog.Record) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(log), "\n") {
		record, ok, err := c.convert(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if ok {
			all = append(all, record)
		}
	}
	return all
}

func nanoseconds(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixNano()
}

// The lines are as Debian's mgen 5.02 wrote them, but for the addresses.
func TestMgensLogBecomesTheMessageLog(t *testing.T) {
	c, _ := testConverter(t, "2026-11-22T02:18:30Z")
	got := records(t, c, `
02:18:28.503450 START Mgen Version 5.02b
02:18:28.503533 LISTEN proto>UDP port>15000
02:18:29.004133 SEND proto>UDP flow>1 seq>0 srcPort>15101 dst>198.18.0.2/15000 size>100 
02:18:29.004299 SEND proto>UDP flow>65537 seq>3 srcPort>15101 dst>239.1.2.3/15001 size>64 
02:18:29.206738 RECV proto>UDP flow>1 seq>1 src>198.18.0.2/15101 dst>198.18.0.1/15000 sent>02:18:29.206689 size>100 gps>INVALID,999.000000,999.000000,4294966297 
02:18:29.206739 RECV proto>UDP flow>65537 seq>3 src>198.18.0.1/15101 dst>239.1.2.3/15001 sent>02:18:29.004299 size>64 gps>INVALID,999.000000,999.000000,4294966297 
02:18:30.003000 RERR type>none src>198.18.0.2/1
02:18:31.581626 STOP`)
	want := []messagelog.Record{
		{TimeNanoseconds: nanoseconds(t, "2026-11-22T02:18:29.004133Z"), Instance: "hq/voice/1", Status: messagelog.Sent, ID: "hq/1_0", Topic: "mgen/udp/198.18.0.2/15000", Bytes: 100},
		{TimeNanoseconds: nanoseconds(t, "2026-11-22T02:18:29.004299Z"), Instance: "hq/voice/1", Status: messagelog.Sent, ID: "hq/1.1_3", Topic: "mgen/udp/239.1.2.3/15001", Bytes: 64},
		{TimeNanoseconds: nanoseconds(t, "2026-11-22T02:18:29.206738Z"), Instance: "hq/voice", Status: messagelog.Received, ID: "veh-1/1_1", Topic: "mgen/udp/198.18.0.1/15000", Bytes: 100},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestATCPMessageIsReceivedWithItsLastPart(t *testing.T) {
	c, _ := testConverter(t, "2026-11-22T02:18:30Z")
	const rest = " dst>198.18.0.1/15002 sent>02:18:29.004315 "
	got := records(t, c, strings.ReplaceAll(`
02:18:29.004645 RECV proto>TCP flow>2 seq>0 src>198.18.0.2/37241 REST size>65535 gps>INVALID,999.0,999.0,4294966297 flags>0x01
02:18:29.004856 RECV proto>TCP flow>2 seq>1 src>198.18.0.2/37242 REST size>100 gps>INVALID,999.0,999.0,4294966297
02:18:29.005055 RECV proto>TCP flow>2 seq>0 src>198.18.0.2/37241 REST size>3395 gps>INVALID,999.0,999.0,4294966297 flags>0x02`, "REST", rest))
	if len(got) != 2 || got[0].ID != "veh-1/2_1" || got[0].Bytes != 100 || got[1].ID != "veh-1/2_0" || got[1].Bytes != 68930 ||
		got[1].TimeNanoseconds != nanoseconds(t, "2026-11-22T02:18:29.005055Z") {
		t.Errorf("got %+v", got)
	}
}

func TestTimesOfDayAreThoseNearestToNow(t *testing.T) {
	for name, c := range map[string]struct{ now, line, want string }{
		"the same day":         {"2026-11-22T12:00:00Z", "11:59:59.5", "2026-11-22T11:59:59.5Z"},
		"just before midnight": {"2026-11-22T00:00:00Z", "23:59:59.999999", "2026-11-21T23:59:59.999999Z"},
		"just after midnight":  {"2026-11-21T23:59:59Z", "00:00:00.000001", "2026-11-22T00:00:00.000001Z"},
		"in another month":     {"2026-12-01T00:00:01Z", "23:59:58.0", "2026-11-30T23:59:58Z"},
	} {
		t.Run(name, func(t *testing.T) {
			converter, _ := testConverter(t, c.now)
			got, err := converter.time(c.line)
			if err != nil || got.UnixNano() != nanoseconds(t, c.want) {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestStrangersAreToldOnceAndLinesThatAreNoneAreErrors(t *testing.T) {
	c, told := testConverter(t, "2026-11-22T02:18:30Z")
	for range 3 {
		got := records(t, c, "02:18:29.2 RECV proto>UDP flow>1 seq>1 src>198.18.0.9/1 dst>198.18.0.1/15000 sent>02:18:29.2 size>100")
		if len(got) != 1 || got[0].ID != "unknown:198.18.0.9/1_1" {
			t.Errorf("got %+v", got)
		}
	}
	if len(*told) != 1 || !strings.Contains((*told)[0], "198.18.0.9") {
		t.Errorf("told %q; want the address, once", *told)
	}
	for _, line := range []string{"now SEND flow>1", "02:18:29.2 SEND proto>UDP flow>x seq>1 dst>198.18.0.1/1 size>3", "02:18:29.2 RECV proto>UDP flow>1 seq>1 dst>198.18.0.1/1 size>3"} {
		if _, _, err := c.convert(line); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

func FuzzConvert(f *testing.F) {
	f.Add("02:18:29.004133 SEND proto>UDP flow>1 seq>0 srcPort>15101 dst>198.18.0.2/15000 size>100")
	f.Add("02:18:29.004645 RECV proto>TCP flow>2 seq>0 src>198.18.0.2/37241 dst>198.18.0.1/1 size>65535 flags>0x01")
	f.Fuzz(func(t *testing.T, line string) {
		c := newConverter(Config{Instance: "hq/voice", Node: "hq"}, func(string) {})
		record, ok, err := c.convert(line)
		if ok && err == nil && record.Validate() != nil && record.TimeNanoseconds > 0 {
			t.Errorf("%q becomes %+v: %v", line, record, record.Validate())
		}
	})
}
