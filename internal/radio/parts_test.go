package radio

import (
	"bytes"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
)

func TestTheHeapGivesFramesByTimeThenOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h heap
	var want []int64
	for range 2000 {
		due := random.Int64N(300)
		want = append(want, due)
		h.push(due, &Frame{Due: due, Sent: int64(h.order)})
	}
	slices.Sort(want)
	var before *Frame
	for i := range want {
		f := h.pop()
		if f.Due != want[i] {
			t.Fatalf("frame %d is due at %d; want %d", i, f.Due, want[i])
		}
		if before != nil && before.Due == f.Due && before.Sent > f.Sent {
			t.Fatalf("frames due at %d: the later one came first", f.Due)
		}
		before = f
	}
}

func TestThePoolKeepsContentsApartAndShrinks(t *testing.T) {
	var p pool
	var frames []*Frame
	for i := range 1000 {
		frames = append(frames, p.get(bytes.Repeat([]byte{byte(i)}, 1+i*7%3000)))
	}
	for i, f := range frames {
		if len(f.Data) != 1+i*7%3000 || f.Data[0] != byte(i) || f.Data[len(f.Data)-1] != byte(i) {
			t.Fatalf("frame %d: %d bytes of %d", i, len(f.Data), f.Data[0])
		}
		p.put(f)
	}
	p.trim() // the burst is within this interval
	p.trim()
	for class, count := range p.count {
		if count > 64 {
			t.Errorf("%d free buffers of %d bytes are kept; want at most 64", count, bufferSizes[class])
		}
	}
}

func TestTimeOnAirIsThatOfTheEthernetFrame(t *testing.T) {
	for _, c := range []struct {
		bytes int
		rate  float64
		want  int64
	}{{942, 1e6, 7_536_000}, {100, 9.8e3, 81_632_653}, {1514, 0, 0}, {1514, 1e-300, FarFuture}} {
		if got := TimeOnAir(c.bytes, c.rate); got != c.want {
			t.Errorf("%d bytes at %v bit/s: %d ns; want %d", c.bytes, c.rate, got, c.want)
		}
	}
}

func TestHistogramsCountIntoTheRightBuckets(t *testing.T) {
	var h Histogram
	for _, v := range []int64{0, 20e3, 20e3 + 1, 2e9} {
		h.Add(LatenessBounds, v)
	}
	if h.Buckets[0] != 2 || h.Buckets[1] != 1 || h.Buckets[len(LatenessBounds)] != 1 || h.Count != 4 || h.Sum != 2e9+40e3+1 {
		t.Errorf("histogram %+v", h)
	}
	if len(DelayBounds) >= maxBuckets || len(LatenessBounds) >= maxBuckets {
		t.Error("more bounds than buckets")
	}
}

func TestEveryReasonHasAName(t *testing.T) {
	seen := map[string]bool{}
	for r := range reasons {
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("reason %d is named %q", r, name)
		} else {
			seen[name] = true
		}
	}
}

func FuzzDestination(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0})
	f.Add(bytes.Repeat([]byte{0xff}, 60))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, ok := destination(data)
		if ok != (len(data) >= HeaderLength) {
			t.Errorf("%d bytes: ok %v", len(data), ok)
		}
		if !ok {
			return
		}
		want := net.HardwareAddr(data[:6])
		if m.String() != want.String() || m.IsMulticast() != (want[0]&1 == 1) {
			t.Errorf("got %v, multicast %v; want %v", m, m.IsMulticast(), want)
		}
		if parsed, err := ParseMAC(m.String()); err != nil || parsed != m {
			t.Errorf("ParseMAC(%v) = %v, %v", m, parsed, err)
		}
	})
}

func FuzzParseMAC(f *testing.F) {
	f.Add("02:02:00:00:00:01")
	f.Add("02-02-00-00-00-01-02-03")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMAC(text)
		if err == nil && m>>48 != 0 {
			t.Errorf("ParseMAC(%q) = %x: more than 48 bits", text, uint64(m))
		}
	})
}

func TestIntervalsBecomeOneWhereTheyOverlapOrAreTooMany(t *testing.T) {
	var all Intervals
	all.Add(Interval{From: 10, To: 20, Worst: 3, Count: 1})
	all.Add(Interval{From: 30, To: 40, Worst: 9, Count: 1})
	all.Add(Interval{From: 15, To: 50, Worst: 5, Count: 1})
	if got := all.Take(); len(got) != 1 || got[0] != (Interval{10, 50, 9, 3}) {
		t.Errorf("got %v; want one from 10 to 50", got)
	}
	const many = 1000
	for i := range int64(many) {
		all.Add(Interval{From: 100 * i, To: 100*i + 50 - i%7, Count: 1})
	}
	got, count, from := all.Take(), int64(0), int64(-1)
	for _, i := range got {
		count += i.Count
		if i.From <= from || i.To < i.From {
			t.Errorf("%v is not in order", i)
		}
		from = i.From
	}
	if len(got) != maxIntervals || count != many || got[0].From != 0 || got[len(got)-1].To != 100*many-100+50-(many-1)%7 {
		t.Errorf("%d intervals of %d added; want %d of %d, from the first to the last", len(got), count, maxIntervals, many)
	}
	if again := all.Take(); len(again) != 0 {
		t.Errorf("%v is handed over twice", again)
	}
}
