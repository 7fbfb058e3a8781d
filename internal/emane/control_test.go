package emane

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"vignette.dev/vignette/internal/radio"
)

// answers of a control port by the type of the query and the build id.
type answers map[[2]uint64][]byte

// emulator is the other end of a control port.
func emulator(t *testing.T, known answers) *Control {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		for {
			request, err := readMessage(there)
			if err != nil {
				return
			}
			response := known.to(request)
			_, _ = there.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(response))), response...))
		}
	}()
	c := NewControl(here, 10*time.Second)
	t.Cleanup(func() { _, _ = c.Close(), there.Close() })
	return c
}

func (known answers) to(request []byte) []byte {
	var sequence, kind, build uint64
	_ = fields(request, func(n protowire.Number, v value) error {
		if n == 1 {
			sequence = v.number
		}
		if n != 3 {
			return nil
		}
		return fields(v.bytes, func(n protowire.Number, v value) error {
			if n == 1 {
				kind = v.number
				return nil
			}
			return fields(v.bytes, func(n protowire.Number, v value) error {
				if n == 1 {
					build = v.number
				}
				return nil
			})
		})
	})
	response := appendUint(appendUint(nil, 1, 7), 2, sequence)
	answer, ok := known[[2]uint64{kind, build}]
	if !ok {
		return appendMessage(appendUint(response, 3, responseError), 6, appendMessage(appendUint(nil, 1, 1), 2, []byte("no such component")))
	}
	return appendMessage(appendUint(response, 3, 1), 4, appendMessage(appendUint(nil, 1, kind), answerField(kind), answer))
}

func numeric(v uint64) []byte { return appendUint(appendUint(nil, 1, typeUint64), anyUint64, v) }

func double(t *testing.T, v float64) []byte {
	t.Helper()
	b, err := appendAny(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func statistic(b []byte, name string, v uint64) []byte {
	return appendMessage(b, 2, appendMessage(appendMessage(nil, 1, []byte(name)), 2, numeric(v)))
}

func tableOf(b []byte, name string, labels []string, rows ...[][]byte) []byte {
	t := appendMessage(nil, 1, []byte(name))
	for _, row := range rows {
		var r []byte
		for _, v := range row {
			r = appendMessage(r, 1, v)
		}
		t = appendMessage(t, 2, r)
	}
	for _, l := range labels {
		t = appendMessage(t, 3, []byte(l))
	}
	return appendMessage(b, 2, t)
}

func rfpipeAnswers(t *testing.T) answers {
	component := func(build, layer uint64, plugin string) []byte {
		return appendMessage(appendUint(appendUint(nil, 1, build), 2, layer), 3, []byte(plugin))
	}
	nem := appendUint(nil, 1, 1)
	for _, c := range [][]byte{component(1, uint64(Transport), "transvirtual"), component(2, uint64(MAC), "rfpipemaclayer"), component(3, uint64(PHY), "")} {
		nem = appendMessage(nem, 2, c)
	}
	mac := tableOf(appendUint(nil, 1, 2), "BroadcastPacketDropTable0", []string{"NEM", "SINR", "Queue Overflow"},
		[][]byte{numeric(2), numeric(5), numeric(0)}, [][]byte{numeric(1), numeric(0), numeric(3)})
	mac = tableOf(mac, "RFSignalTable", []string{"NEM", "AvgRxPower", "AvgNoiseFloor", "AvgSINR"}, [][]byte{numeric(2), double(t, -95), double(t, -110), double(t, 15)})
	mac = tableOf(mac, "BroadcastPacketAcceptTable0", []string{"NEM", "Num Pkts Rx"}, [][]byte{numeric(2), numeric(20)})
	phy := tableOf(appendUint(nil, 1, 3), "BroadcastPacketDropTable0", []string{"NEM", "Rx Sensitivity", "Propagation Model"}, [][]byte{numeric(3), numeric(9), numeric(1)})
	phy = tableOf(phy, "PathlossEventInfoTable", []string{"NEM", "Forward Pathloss"}, [][]byte{numeric(2), double(t, 95)})
	return answers{{queryManifest, 0}: appendMessage(nil, 1, nem), {queryStatistic, 1}: nil, {queryTable, 1}: nil,
		{queryStatistic, 2}: statistic(nil, "numDownstreamPacketsBroadcastTx0", 12), {queryTable, 2}: mac, {queryStatistic, 3}: nil, {queryTable, 3}: phy}
}

func TestCountersOfEMANEAreThoseOfTheNativeModels(t *testing.T) {
	ports := map[int]*radio.Port{1: {}, 2: {}, 3: {}}
	all, err := Scrape(emulator(t, rfpipeAnswers(t)), func(nem int) *radio.Port { return ports[nem] })
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	s := all[0]
	drops := map[string]uint64{}
	s.Dropped(func(reason string, frames uint64) { drops[reason] = frames })
	if diff := cmp.Diff(map[string]uint64{"lowSINR": 5, "queueFull": 3, "belowSensitivity": 10}, drops); diff != "" {
		t.Error(diff)
	}
	if s.NEM != 1 || s.Transmissions != 12 || s.Pathloss != 1 {
		t.Errorf("%+v", s)
	}
	for _, l := range s.Links {
		if l.From == ports[2] && (l.Received != 20 || l.SINRDB != 15 || l.PowerDBm != -95 || l.Missed[radio.LowSINR-radio.BelowSensitivity] != 5) {
			t.Errorf("link from NEM 2: %+v", l)
		}
	}
}

func TestErrorsOfEMANEAreReturnedInItsWords(t *testing.T) {
	if _, err := emulator(t, answers{}).Statistics(9); err == nil || !strings.Contains(err.Error(), "no such component") {
		t.Error(err)
	}
	if err := emulator(t, answers{}).Configure(9, map[string]any{"delay": "soon"}); err == nil || !strings.Contains(err.Error(), "delay") {
		t.Error(err)
	}
}

func FuzzResponse(f *testing.F) {
	f.Add(answers{{queryManifest, 0}: {}}.to(appendMessage(appendUint(nil, 1, 1), 3, appendUint(nil, 1, queryManifest))))
	f.Fuzz(func(_ *testing.T, response []byte) {
		_ = checkResponse(response, 1)
		answer, err := answerOf(response, 3)
		if err != nil {
			answer = response
		}
		_, _ = parseManifest(answer)
		_, _ = parseStatistics(answer)
		if tables, err := parseTables(answer); err == nil {
			for _, t := range tables {
				t.each(func(int, map[string]any) {})
			}
		}
	})
}
