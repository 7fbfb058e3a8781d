package emane

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"vignette.dev/vignette/internal/emane/emanepb"
	"vignette.dev/vignette/internal/radio"
)

// asked is what a query is about.
type asked struct {
	kind    emanepb.Query_Kind
	buildID uint32
}

// answers of a control port.
type answers map[asked]*emanepb.Answer

// emulator is the other end of a control port.
func emulator(t *testing.T, known answers) *Control {
	t.Helper()
	return portThat(t, func(there net.Conn) error {
		request := &emanepb.Request{}
		if err := ReadMessage(there, request); err != nil {
			return err
		}
		return WriteMessage(there, known.to(request))
	})
}

// portThat is a control port that answers one request by each call, until an error.
func portThat(t testing.TB, answer func(net.Conn) error) *Control {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		for answer(there) == nil {
		}
	}()
	c := NewControl(here, 10*time.Second)
	t.Cleanup(func() { _, _ = c.Close(), there.Close() })
	return c
}

func (known answers) to(request *emanepb.Request) *emanepb.Response {
	q := request.GetQuery()
	selected := q.GetParameters().GetBuildId() + q.GetStatistics().GetBuildId() + q.GetTables().GetBuildId() // there is one
	if answer, ok := known[asked{q.GetKind(), selected}]; ok {
		return &emanepb.Response{Request: request.Sequence, Kind: emanepb.Response_QUERY.Enum(), Answer: answer}
	}
	return &emanepb.Response{Request: request.Sequence, Kind: emanepb.Response_ERROR.Enum(), Failure: &emanepb.Failure{Description: new("no such component")}}
}

func numeric(v uint64) *emanepb.Value {
	return &emanepb.Value{Kind: emanepb.Value_UINT64.Enum(), Uint64: &v}
}

func double(v float64) *emanepb.Value {
	return &emanepb.Value{Kind: emanepb.Value_DOUBLE.Enum(), Double: &v}
}

func statistic(name string, v *emanepb.Value) *emanepb.Statistic {
	return &emanepb.Statistic{Name: &name, Value: v}
}

func statistics(all ...*emanepb.Statistic) *emanepb.Answer {
	return &emanepb.Answer{Statistics: &emanepb.Statistics{Statistics: all}}
}

func table(name string, labels []string, rows ...[]*emanepb.Value) *emanepb.Table {
	t := &emanepb.Table{Name: &name, Labels: labels}
	for _, r := range rows {
		t.Rows = append(t.Rows, &emanepb.Row{Values: r})
	}
	return t
}

func tables(all ...*emanepb.Table) *emanepb.Answer {
	return &emanepb.Answer{Tables: &emanepb.Tables{Tables: all}}
}

func component(buildID uint32, layer Layer, plugin string) *emanepb.Component {
	return &emanepb.Component{BuildId: &buildID, Layer: emanepb.Component_Layer(layer).Enum(), Plugin: &plugin}
}

// manifest of NEM 1.
func manifest(components ...*emanepb.Component) *emanepb.Answer {
	return &emanepb.Answer{Manifest: &emanepb.Manifest{Nems: []*emanepb.NEM{{Id: new(uint32(1)), Components: components}}}}
}

func rfpipeAnswers() answers {
	row := func(some ...*emanepb.Value) []*emanepb.Value { return some }
	mac := tables(
		table("BroadcastPacketDropTable0", []string{"NEM", "SINR", "Queue Overflow"}, row(numeric(2), numeric(5), numeric(0)), row(numeric(1), numeric(0), numeric(3))),
		table("RFSignalTable", []string{"NEM", "AvgRxPower", "AvgNoiseFloor", "AvgSINR"}, row(numeric(2), double(-95), double(-110), double(15))),
		table("BroadcastPacketAcceptTable0", []string{"NEM", "Num Pkts Rx"}, row(numeric(2), numeric(20))))
	phy := tables(
		table("BroadcastPacketDropTable0", []string{"NEM", "Rx Sensitivity", "Propagation Model"}, row(numeric(3), numeric(9), numeric(1))),
		table("PathlossEventInfoTable", []string{"NEM", "Forward Pathloss"}, row(numeric(2), double(95))))
	return answers{
		{emanepb.Query_MANIFEST, 0}:   manifest(component(1, Transport, "transvirtual"), component(2, MAC, "rfpipemaclayer"), component(3, PHY, "")),
		{emanepb.Query_STATISTICS, 1}: nil,
		{emanepb.Query_TABLES, 1}:     nil,
		{emanepb.Query_STATISTICS, 2}: statistics(statistic("numDownstreamPacketsBroadcastTx0", numeric(12))),
		{emanepb.Query_TABLES, 2}:     mac,
		{emanepb.Query_STATISTICS, 3}: nil,
		{emanepb.Query_TABLES, 3}:     phy,
	}
}

func TestCountersOfEMANEAreThoseOfTheNativeModels(t *testing.T) {
	all, err := Scrape(nil, emulator(t, rfpipeAnswers()), namesOf(1, 2, 3))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	s := all[0]
	drops := map[string]uint64{}
	s.Dropped(func(reason string, frames uint64) { drops[reason] = frames })
	if diff := cmp.Diff(map[string]uint64{"lowSINR": 5, "queueFull": 3, "belowSensitivity": 10}, drops); diff != "" {
		t.Error(diff)
	}
	if s.NEM != 1 || s.Pathloss != 1 {
		t.Errorf("%+v", s)
	}
	for _, l := range s.Links {
		if l.FromNEM == 2 && (l.Received != 20 || l.SINRDB != 15 || l.Missed[radio.LowSINR-radio.BelowSensitivity] != 5) {
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

func TestAnAnswerThatIsNoMessageIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"bytes of another protocol":   {"\x00\x00\x00\x04\xff\xff\xff\xff", "control port: message of 4 bytes that cannot be read"},
		"a field of another type":     {"\x00\x00\x00\x02\x12\x00", "control port: message of 2 bytes that cannot be read"},
		"the answer to another":       {"\x00\x00\x00\x04\x10\x07\x18\x01", "control port: answer to request 7, want 1"},
		"longer than any answer":      {"\xff\xff\xff\xff", "control port: message of 4294967295 bytes, want at most 67108864"},
		"a value without one":         {"\x00\x00\x00\x0f\x10\x01\x18\x01\x22\x09\x22\x07\x12\x05\x0a\x01x\x12\x00", "control port: message of 15 bytes that cannot be read"},
		"a value of a kind, but none": {"\x00\x00\x00\x11\x10\x01\x18\x01\x22\x0b\x22\x09\x12\x07\x0a\x01x\x12\x02\x08\x08", "control port: statistic x: value without a value"},
	} {
		port := portThat(t, func(there net.Conn) error {
			if err := ReadMessage(there, &emanepb.Request{}); err != nil {
				return err
			}
			_, err := io.WriteString(there, c.answer)
			return err
		})
		if _, err := port.Statistics(1); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
}

func FuzzResponse(f *testing.F) {
	for what, answer := range rfpipeAnswers() {
		response, err := proto.Marshal(&emanepb.Response{Request: new(uint32(1)), Kind: emanepb.Response_QUERY.Enum(), Answer: answer})
		if err != nil {
			f.Fatal(what, err)
		}
		f.Add(response)
	}
	f.Fuzz(func(t *testing.T, response []byte) {
		port := portThat(t, func(there net.Conn) error {
			if err := ReadMessage(there, &emanepb.Request{}); err != nil {
				return err
			}
			_, err := there.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(response))), response...))
			return err
		})
		for _, ask := range []func(){
			func() { _, _ = port.Manifest() },
			func() { _, _ = port.Statistics(1) },
			func() { _, _ = port.Configuration(1) },
			func() {
				all, _ := port.Tables(1)
				for _, t := range all {
					t.each(func(int, map[string]any) {})
				}
			},
		} {
			port.sequence = 0
			ask()
		}
	})
}
