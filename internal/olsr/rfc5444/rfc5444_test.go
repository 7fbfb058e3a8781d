package rfc5444

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

// random makes a message that a protocol could send.
func random(r *rand.Rand) Message {
	length := []int{4, 16}[r.Intn(2)]
	m := Message{Header: Header{Type: uint8(r.Intn(256)), AddressLength: length}}
	address := func() netip.Addr {
		b := make([]byte, length)
		r.Read(b)
		if r.Intn(2) == 0 {
			copy(b, []byte{10, 20, 30}[:r.Intn(4)])
		}
		if r.Intn(3) == 0 {
			clear(b[r.Intn(length):])
		}
		a, _ := netip.AddrFromSlice(b)
		return a
	}
	if r.Intn(2) == 0 {
		m.Originator = address()
	}
	if m.HasHopLimit = r.Intn(2) == 0; m.HasHopLimit {
		m.HopLimit = uint8(r.Intn(256))
	}
	if m.HasHopCount = r.Intn(2) == 0; m.HasHopCount {
		m.HopCount = uint8(r.Intn(256))
	}
	if m.HasSequence = r.Intn(2) == 0; m.HasSequence {
		m.Sequence = uint16(r.Intn(1 << 16))
	}
	value := func(limit int) []byte {
		n := r.Intn(limit)
		if n == 0 {
			return nil
		}
		b := make([]byte, n)
		r.Read(b)
		return b
	}
	for range r.Intn(4) {
		m.TLVs = append(m.TLVs, TLV{Type: uint8(r.Intn(256)), Extension: uint8(r.Intn(3)), Value: value(300)})
	}
	for range r.Intn(4) {
		b := AddressBlock{}
		for range 1 + r.Intn(20) {
			bits := 8 * length
			if r.Intn(4) == 0 {
				bits = r.Intn(bits + 1)
			}
			b.Addresses = append(b.Addresses, netip.PrefixFrom(address(), bits))
		}
		for range r.Intn(4) {
			first := r.Intn(len(b.Addresses))
			t := AddressTLV{Type: uint8(r.Intn(256)), Extension: uint8(r.Intn(2)), First: first, Last: first + r.Intn(len(b.Addresses)-first), Value: value(9)}
			if t.Value != nil && r.Intn(2) == 0 {
				t.Multivalue = true
				t.Value = bytes.Repeat(t.Value, t.Last-t.First+1)
			}
			b.TLVs = append(b.TLVs, t)
		}
		m.Blocks = append(m.Blocks, b)
	}
	return m
}

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 5000 {
		var want []Message
		packet := AppendPacketHeader(nil, 77, r.Intn(2) == 0)
		for range r.Intn(4) {
			m := random(r)
			var err error
			if packet, err = m.Append(packet); err != nil {
				t.Fatal(err)
			}
			want = append(want, m)
		}
		var p Packet
		if err := Split(packet, &p); err != nil {
			t.Fatalf("%v:\n%s", err, hex.Dump(packet))
		}
		if len(p.Messages) != len(want) {
			t.Fatalf("%d messages, not %d", len(p.Messages), len(want))
		}
		for i := range want {
			var got Message
			if err := p.Messages[i].Decode(&got); err != nil {
				t.Fatalf("%v: %+v", err, want[i])
			}
			if !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("read\n%+v\nof\n%+v", got, want[i])
			}
		}
	}
}

func TestAnExampleOfTheStandard(t *testing.T) {
	// By hand after RFC 5444 sections 5.1 to 5.4. A packet with sequence number 5, a TC-like message, two
	// addresses with common head 10.0.0 and a TLV with a value for each.
	want := "08" + "0005" + // version and flags, packet sequence number
		"01" + "f3" + "0021" + "0a000001" + "ff" + "00" + "0102" + // message header
		"0004" + "01100140" + // message TLVs: VALIDITY_TIME
		"02" + "80" + "03" + "0a0000" + "02" + "03" + // addresses
		"0005" + "0914020102" // their TLVs: a value for each
	m := Message{
		Header: Header{Type: 1, AddressLength: 4, Originator: netip.MustParseAddr("10.0.0.1"), HasHopLimit: true, HopLimit: 255, HasHopCount: true, HasSequence: true, Sequence: 0x102},
		TLVs:   []TLV{{Type: ValidityTime, Value: []byte{0x40}}},
		Blocks: Blocks([]Entry{
			{Address: netip.MustParsePrefix("10.0.0.2/32"), Attributes: []Attribute{{Type: 9, Value: []byte{1}}}},
			{Address: netip.MustParsePrefix("10.0.0.3/32"), Attributes: []Attribute{{Type: 9, Value: []byte{2}}}},
		}),
	}
	packet, err := m.Append(AppendPacketHeader(nil, 5, true))
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(packet); got != want {
		t.Errorf("packet\n%s, not\n%s", got, want)
	}
}

func TestEntriesThatShareAnAttributeShareATLV(t *testing.T) {
	entry := func(address string, attributes ...Attribute) Entry {
		return Entry{Address: netip.MustParsePrefix(address), Attributes: attributes}
	}
	a, b, c := Attribute{Type: 3, Value: []byte{1}}, Attribute{Type: 3, Value: []byte{2}}, Attribute{Type: 8, Value: []byte{1}}
	blocks := Blocks([]Entry{
		entry("10.0.0.1/32", a), entry("10.0.0.2/32", a, c), entry("10.0.0.3/32", b, a), entry("10.0.0.4/32"), entry("10.0.0.5/32", c),
	})
	want := []AddressTLV{
		{Type: 3, First: 0, Last: 2, Multivalue: true, Value: []byte{1, 1, 2}},
		{Type: 8, First: 1, Last: 1, Value: []byte{1}},
		{Type: 8, First: 4, Last: 4, Value: []byte{1}},
		{Type: 3, First: 2, Last: 2, Value: []byte{1}},
	}
	if len(blocks) != 1 || !reflect.DeepEqual(blocks[0].TLVs, want) {
		t.Errorf("%+v, not %+v", blocks, want)
	}
	many := make([]Entry, 600)
	for i := range many {
		many[i] = entry(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String()+"/32", a)
	}
	if blocks := Blocks(many); len(blocks) != 3 || len(blocks[2].Addresses) != 90 {
		t.Errorf("600 addresses in %d blocks", len(blocks))
	}
}

func TestMalformedPacketsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		packet string
		want   error
	}{
		"nothing":                        {"", ErrTruncated},
		"another version":                {"10", ErrMalformed},
		"sequence number cut":            {"0801", ErrTruncated},
		"message cut":                    {"0001030010", ErrTruncated},
		"size less than header":          {"0001030003", ErrMalformed},
		"no TLV block":                   {"0001030004", ErrTruncated},
		"TLV cut":                        {"0001030008" + "0002" + "0110", ErrTruncated},
		"index without address":          {"0001030009" + "0003" + "014000", ErrMalformed},
		"length without value":           {"0001030008" + "0002" + "0108", ErrMalformed},
		"addresses of three bytes":       {"0001020006" + "0000", ErrMalformed},
		"no address in a block":          {"000103000a" + "0000" + "0000" + "0000", ErrMalformed},
		"head longer than an address":    {"0001030010" + "0000" + "0180" + "05" + "0102030405" + "0000", ErrMalformed},
		"both kinds of tail":             {"000103000b" + "0000" + "0160" + "04" + "0000", ErrMalformed},
		"prefix longer than an address":  {"000103000f" + "0000" + "0110" + "0a000001" + "21" + "0000", ErrMalformed},
		"TLV beyond the last address":    {"0001030011" + "0000" + "0100" + "0a000001" + "0003" + "034001", ErrMalformed},
		"values that cannot be shared":   {"0001030017" + "0000" + "0200" + "0a0000010a000002" + "0005" + "0314030102", ErrTruncated},
		"three bytes for two addresses":  {"0001030018" + "0000" + "0200" + "0a0000010a000002" + "0006" + "031403010203", ErrMalformed},
		"a TLV with both kinds of index": {"0001030013" + "0000" + "0100" + "0a000001" + "0005" + "0360000000", ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			packet, err := hex.DecodeString(c.packet)
			if err != nil {
				t.Fatal(err)
			}
			var p Packet
			var m Message
			err = Split(packet, &p)
			if err == nil && len(p.Messages) == 1 {
				err = p.Messages[0].Decode(&m)
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%v, not %v", err, c.want)
			}
		})
	}
}

func TestTimesAreThoseOfTheStandard(t *testing.T) {
	for code, want := range map[uint8]time.Duration{
		8: time.Second / 512, 80: time.Second, 88: 2 * time.Second, 100: 6 * time.Second, 103: 7500 * time.Millisecond,
	} {
		if got := Time(code); got != want {
			t.Errorf("code %d is %v, not %v", code, got, want)
		}
		if got := TimeCode(want); got != code {
			t.Errorf("%v has code %d, not %d", want, got, code)
		}
	}
	for code := 1; code < 254; code++ {
		if Time(uint8(code)) >= Time(uint8(code+1)) {
			t.Errorf("code %d is not less than the next", code)
		}
		if got := TimeCode(Time(uint8(code))); got != uint8(code) {
			t.Errorf("code %d comes back as %d", code, got)
		}
	}
	if TimeCode(0) != 0 || TimeCode(Infinite) != 255 {
		t.Error("zero and infinite times have other codes than 0 and 255")
	}
	near, _ := TimeAt([]byte{80, 2, 88}, 2)
	far, _ := TimeAt([]byte{80, 2, 88}, 3)
	if _, ok := TimeAt([]byte{80, 2}, 3); ok || near != time.Second || far != 2*time.Second {
		t.Errorf("%v within two hops, %v beyond, even number of bytes accepted: %v", near, far, ok)
	}
}

func TestMetricsAreRoundedUpByLessThanOneIn257(t *testing.T) {
	for code := uint16(0); code < 1<<12; code++ {
		if got := MetricCode(MetricOf(code)); got != code {
			t.Fatalf("code %#x of metric %d comes back as %#x", code, MetricOf(code), got)
		}
	}
	if MetricOf(0) != MinimumMetric || MetricOf(1<<12-1) != MaximumMetric {
		t.Errorf("metrics go from %d to %d", MetricOf(0), MetricOf(1<<12-1))
	}
	r := rand.New(rand.NewSource(2))
	for range 100000 {
		metric := uint32(1 + r.Intn(MaximumMetric))
		got := MetricOf(MetricCode(metric))
		if got < metric || float64(got-metric) > float64(metric+256)/256 {
			t.Fatalf("metric %d became %d", metric, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	r := rand.New(rand.NewSource(3))
	for range 20 {
		m := random(r)
		b, _ := m.Append(AppendPacketHeader(nil, 1, true))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		var p Packet
		_ = Split(packet, &p)
		for i := range p.Messages {
			var m, again Message
			if p.Messages[i].HasHopLimit && p.Messages[i].HopLimit > 0 {
				p.Messages[i].Forwarded()
			}
			if p.Messages[i].Decode(&m) != nil {
				continue
			}
			b, err := m.Append(AppendPacketHeader(nil, 0, false))
			if err != nil {
				// Written less densely than it was read, it may have become too long.
				if len(packet) < 1000 {
					t.Fatalf("what was read cannot be written: %v", err)
				}
				continue
			}
			var q Packet
			if err := Split(b, &q); err != nil || q.Messages[0].Decode(&again) != nil {
				t.Fatalf("what was written cannot be read: %v", err)
			}
			c, _ := again.Append(AppendPacketHeader(nil, 0, false))
			if !bytes.Equal(b, c) {
				t.Fatalf("written twice it differs:\n%x\n%x", b, c)
			}
		}
	})
}
