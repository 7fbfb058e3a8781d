package dataplane

import (
	"reflect"
	"slices"
	"testing"

	"vignette.dev/vignette/internal/radio"
)

func TestWrittenShipmentsAreReadAsTheyWere(t *testing.T) {
	same := func(x int64) int64 { return x + 5 }
	for name, s := range map[string]radio.Shipment{
		"a frame for all":   {Source: 65534, Index: 7, Sent: 1, Start: 2, Due: 3, Bytes: 3, Data: []byte{1, 2, 3}},
		"a frame for some":  {Source: 1, Receivers: []uint16{2, 65534}, Due: -9, Bytes: 1, Data: []byte{9}},
		"only interference": {Source: 3, FrequencyHertz: 2.4e9, PowerDBm: -3.5, RateBitsPerSecond: 1e6, Bytes: 900},
		"a slot": {Source: 3, Slot: 1 << 40, SlotDuration: 4, OnAir: 3, Start: 5, Due: 9, Bytes: 40, Parts: []radio.Part{
			{Destination: 0xffffffffffff, Class: 4, Sequence: 1 << 33, Offset: 3, Bytes: 2, Last: true, Sent: -7, Data: []byte{1, 2, 3, 4, 5}},
			{Destination: 0x020200000001, Bytes: 20, Sent: 8}}},
	} {
		t.Run(name, func(t *testing.T) {
			id, got, err := parseShipment(appendShipment(nil, networkIDOf("uid"), &s, same))
			if err != nil || id != networkIDOf("uid") {
				t.Fatalf("%x: %v", id, err)
			}
			want := s
			want.Parts = slices.Clone(s.Parts)
			shiftTimes(&want, 5)
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("read %+v; want %+v", *got, want)
			}
		})
	}
}

func FuzzParseShipment(f *testing.F) {
	f.Add(appendShipment(nil, networkIDOf("uid"), &radio.Shipment{Receivers: []uint16{1}, Bytes: 1, Data: []byte{1}}, func(x int64) int64 { return x }))
	f.Add([]byte{shipmentVersion})
	f.Add(appendShipment(nil, networkIDOf("uid"), &radio.Shipment{Parts: []radio.Part{{Bytes: 1}, {Last: true, Bytes: 1, Data: []byte{1, 2}}}}, func(x int64) int64 { return x }))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, s, err := parseShipment(b); err == nil && len(s.Data) > 0 && len(s.Data) != s.Bytes {
			t.Errorf("a frame of %d bytes has %d", s.Bytes, len(s.Data))
		}
	})
}
