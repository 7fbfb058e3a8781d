package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// vectors are packets as the specification lays them out, octet by octet.
var vectors = map[string]struct {
	packet Packet
	octets string
}{
	"ADVERTISE":                     {&Advertise{GatewayID: 7, DurationSeconds: 900}, "05 00 07 0384"},
	"SEARCHGW":                      {&SearchGW{Radius: 1}, "03 01 01"},
	"GWINFO of a gateway":           {&GWInfo{GatewayID: 7, Address: []byte{}}, "03 02 07"},
	"GWINFO of a client":            {&GWInfo{GatewayID: 7, Address: []byte{198, 18, 0, 1}}, "07 02 07 c6120001"},
	"CONNECT":                       {&Connect{CleanSession: true, KeepAliveSeconds: 60, ClientID: "ab"}, "08 04 04 01 003c 6162"},
	"CONNECT with a will":           {&Connect{Will: true, KeepAliveSeconds: 60, ClientID: "a"}, "07 04 08 01 003c 61"},
	"CONNACK":                       {&Connack{Code: Congestion}, "03 05 01"},
	"WILLTOPICREQ":                  {&WillTopicReq{}, "02 06"},
	"WILLTOPIC":                     {&WillTopic{QoS: 1, Retain: true, Topic: "w"}, "04 07 30 77"},
	"WILLTOPIC that deletes":        {&WillTopic{}, "02 07"},
	"WILLMSGREQ":                    {&WillMsgReq{}, "02 08"},
	"WILLMSG":                       {&WillMsg{Message: []byte("off")}, "05 09 6f6666"},
	"REGISTER":                      {&Register{TopicID: 1, MsgID: 2, Topic: "a/b"}, "09 0a 0001 0002 612f62"},
	"REGACK":                        {&Regack{TopicID: 1, MsgID: 2, Code: Accepted}, "07 0b 0001 0002 00"},
	"PUBLISH of QoS 0":              {&Publish{TopicID: 1, Data: []byte("x")}, "08 0c 00 0001 0000 78"},
	"PUBLISH of QoS 2, repeated":    {&Publish{DUP: true, QoS: 2, Retain: true, Kind: Predefined, TopicID: 3, MsgID: 4, Data: []byte("x")}, "08 0c d1 0003 0004 78"},
	"PUBLISH of QoS -1, short name": {&Publish{QoS: -1, Kind: Short, TopicID: 0x6162, Data: []byte{}}, "07 0c 62 6162 0000"},
	"PUBACK":                        {&Puback{TopicID: 1, MsgID: 2, Code: InvalidTopicID}, "07 0d 0001 0002 02"},
	"PUBCOMP":                       {&Pubcomp{MsgID: 2}, "04 0e 0002"},
	"PUBREC":                        {&Pubrec{MsgID: 2}, "04 0f 0002"},
	"PUBREL":                        {&Pubrel{MsgID: 2}, "04 10 0002"},
	"SUBSCRIBE to a filter":         {&Subscribe{QoS: 1, MsgID: 2, Topic: "a/#"}, "08 12 20 0002 612f23"},
	"SUBSCRIBE to a predefined id":  {&Subscribe{DUP: true, Kind: Predefined, MsgID: 2, TopicID: 5}, "07 12 81 0002 0005"},
	"SUBSCRIBE to a short name":     {&Subscribe{Kind: Short, MsgID: 2, Topic: "ab"}, "07 12 02 0002 6162"},
	"SUBACK":                        {&Suback{QoS: 1, TopicID: 1, MsgID: 2}, "08 13 20 0001 0002 00"},
	"UNSUBSCRIBE":                   {&Unsubscribe{MsgID: 2, Topic: "a"}, "06 14 00 0002 61"},
	"UNSUBACK":                      {&Unsuback{MsgID: 2}, "04 15 0002"},
	"PINGREQ":                       {&Pingreq{}, "02 16"},
	"PINGREQ of one that sleeps":    {&Pingreq{ClientID: "ab"}, "04 16 6162"},
	"PINGRESP":                      {&Pingresp{}, "02 17"},
	"DISCONNECT":                    {&Disconnect{}, "02 18"},
	"DISCONNECT to sleep":           {&Disconnect{Sleep: true, SleepSeconds: 10}, "04 18 000a"},
	"WILLTOPICUPD":                  {&WillTopicUpd{QoS: 2, Topic: "w"}, "04 1a 40 77"},
	"WILLTOPICRESP":                 {&WillTopicResp{}, "03 1b 00"},
	"WILLMSGUPD":                    {&WillMsgUpd{Message: []byte{1}}, "03 1c 01"},
	"WILLMSGRESP":                   {&WillMsgResp{Code: NotSupported}, "03 1d 03"},
}

func octets(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPacketsHaveTheOctetsOfTheSpecification(t *testing.T) {
	seen := map[Type]bool{}
	for name, v := range vectors {
		t.Run(name, func(t *testing.T) {
			seen[TypeOf(v.packet)] = true
			want := octets(t, v.octets)
			got, err := Append(nil, v.packet)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("written as % x, %v; want % x", got, err, want)
			}
			parsed, err := Parse(want)
			if err != nil || !reflect.DeepEqual(parsed, v.packet) {
				t.Errorf("read as %+v, %v; want %+v", parsed, err, v.packet)
			}
		})
	}
	for kind := range packets {
		if !seen[kind] {
			t.Errorf("%s is not tried", kind)
		}
	}
}

func TestLongPacketsHaveALengthOfThreeOctets(t *testing.T) {
	for _, size := range []int{0, 1, 247, 248, 249, 250, 251, 255, 256, 1000, MaxPacket - PublishHeader} {
		data := bytes.Repeat([]byte{0xa5}, size)
		packet, err := Append([]byte("before"), &Publish{TopicID: 9, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		packet = packet[len("before"):]
		wantLong := size+7 > 255
		if long := packet[0] == 1; long != wantLong || long && len(packet) != size+PublishHeader {
			t.Errorf("data of %d octets: a packet of %d that begins with % x", size, len(packet), packet[:4])
		}
		p, err := Parse(packet)
		if err != nil || !bytes.Equal(p.(*Publish).Data, data) {
			t.Errorf("data of %d octets is read as %v, %v", size, p, err)
		}
	}
	if _, err := Append(nil, &Publish{Data: make([]byte, MaxPacket-PublishHeader+1)}); err == nil {
		t.Error("a packet above 65535 octets is written")
	}
	short := octets(t, "01 0008 0c 00 0001 00") // a long length field where a short one would do is allowed, but this one cuts the packet
	if _, err := Parse(short); err == nil {
		t.Error("a PUBLISH without the whole message id is read")
	}
	if p, err := Parse(octets(t, "01 0005 05 00")); err != nil || p.(*Connack).Code != Accepted {
		t.Errorf("a CONNACK with a long length is read as %v, %v", p, err)
	}
}

func TestMalformedPacketsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "a length only": "02", "a long length only": "01", "half a long length": "01 00", "length 0": "00 17", "long length 0": "01 0000 17",
		"length above the datagram": "03 17", "length below the datagram": "02 17 00", "unknown type": "02 03", "reserved type": "02 ff",
		"CONNECT without client id": "06 04 04 01 003c", "CONNECT of another protocol": "07 04 04 02 003c 61", "empty CONNACK": "02 05",
		"CONNACK too long": "04 05 00 00", "REGISTER without topic": "06 0a 0001 0002", "topic id type 3": "08 0c 03 0001 0000 78",
		"SUBSCRIBE with QoS -1": "08 12 60 0002 612f23", "SUBSCRIBE without topic": "05 12 00 0002", "SUBSCRIBE to a short name of 3": "08 12 02 0002 616263",
		"SUBSCRIBE to half an id": "06 12 01 0002 00", "SUBACK of QoS -1": "08 13 60 0001 0002 00", "PUBREL of 1 octet": "03 10 00",
		"DISCONNECT with half a duration": "03 18 00", "PINGRESP with something": "03 17 00", "encapsulation": "04 fe 00 01 02 17",
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := Parse(octets(t, text)); !errors.Is(err, ErrMalformed) {
				t.Errorf("read as %+v, %v; want ErrMalformed", p, err)
			}
		})
	}
}

func TestPacketsThatWouldBeMalformedAreNotWritten(t *testing.T) {
	for name, p := range map[string]Packet{
		"no client id": &Connect{}, "no topic": &Register{}, "QoS 3": &Publish{QoS: 3}, "will of QoS -1": &WillTopic{QoS: -1, Topic: "w"},
		"short name of 1": &Subscribe{Kind: Short, Topic: "a"}, "no filter": &Subscribe{}, "subscribe with QoS -1": &Subscribe{QoS: -1, Topic: "a"},
		"unsubscribe from nothing": &Unsubscribe{}, "grant of QoS -1": &Suback{QoS: -1}, "will update of QoS 3": &WillTopicUpd{QoS: 3, Topic: "w"},
	} {
		if b, err := Append(nil, p); err == nil {
			t.Errorf("%s: written as % x", name, b)
		}
	}
}

// random fills a packet's fields; strings and data are never longer than what fits.
func random(r *rand.Rand, p Packet) Packet {
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case bool:
			f.SetBool(r.IntN(2) == 1)
		case byte, ReturnCode:
			f.SetUint(uint64(r.IntN(256)))
		case uint16:
			f.SetUint(uint64(r.IntN(65536)))
		case int:
			f.SetInt(int64(r.IntN(3)))
		case TopicKind:
			f.SetUint(uint64(r.IntN(3)))
		case string:
			f.SetString(string(randomBytes(r, 1+r.IntN(300))))
		case []byte:
			f.SetBytes(randomBytes(r, r.IntN(300)))
		}
	}
	return p
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.UintN(256))
	}
	return b
}

// normal makes a random packet one that there can be: fields that its octets leave out are empty.
func normal(p Packet) Packet {
	pair := func(kind TopicKind, id *uint16, topic *string) {
		if kind == Predefined {
			*topic = ""
			return
		}
		*id = 0
		if kind == Short {
			*topic = (*topic + "xx")[:2]
		}
	}
	switch p := p.(type) {
	case *Subscribe:
		pair(p.Kind, &p.TopicID, &p.Topic)
	case *Unsubscribe:
		pair(p.Kind, &p.TopicID, &p.Topic)
	case *Disconnect:
		if !p.Sleep {
			p.SleepSeconds = 0
		}
	}
	return p
}

func TestWhatIsWrittenIsReadAsItWas(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for kind, empty := range packets {
		for range 200 {
			p := normal(random(r, empty()))
			b, err := Append(nil, p)
			if err != nil {
				t.Fatalf("%+v: %v", p, err)
			}
			if got, err := Parse(b); err != nil || !reflect.DeepEqual(got, p) {
				t.Fatalf("%s: %+v is read as %+v, %v", kind, p, got, err)
			}
		}
	}
}

func TestEncapsulationsCarryAPacketAndANode(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		f := Forward{Radius: byte(r.IntN(4)), Node: randomBytes(r, r.IntN(253)), Packet: randomBytes(r, r.IntN(600))}
		b, err := AppendForward(nil, f)
		if err != nil || !IsForward(b) {
			t.Fatalf("%+v: % x, %v", f, b, err)
		}
		if got, err := ParseForward(b); err != nil || got.Radius != f.Radius || !bytes.Equal(got.Node, f.Node) || !bytes.Equal(got.Packet, f.Packet) {
			t.Fatalf("%+v is read as %+v, %v", f, got, err)
		}
	}
	if _, err := AppendForward(nil, Forward{Node: make([]byte, 253)}); err == nil {
		t.Error("a node id of 253 octets is written")
	}
	for name, text := range map[string]string{"no control octet": "02 fe", "another packet": "02 17", "cut": "05 fe 00 01"} {
		if f, err := ParseForward(octets(t, text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range vectors {
		f.Add(octets(f, v.octets))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("% x: %v is not ErrMalformed", b, err)
			}
			return
		}
		again, err := Append(nil, p)
		if err != nil {
			t.Fatalf("% x is read as %+v, which is not written: %v", b, p, err)
		}
		if p2, err := Parse(again); err != nil || !reflect.DeepEqual(p, p2) {
			t.Fatalf("% x is read as %+v, written as % x, read as %+v, %v", b, p, again, p2, err)
		}
	})
}

func FuzzParseForward(f *testing.F) {
	f.Add(octets(f, "05 fe 01 aabb 02 17"))
	f.Add(octets(f, "03 fe 00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		forward, err := ParseForward(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("% x: %v is not ErrMalformed", b, err)
			}
			return
		}
		if len(forward.Node) > 252 {
			return // by the long length field, which this encapsulation has no use for
		}
		again, err := AppendForward(nil, forward)
		if err != nil {
			t.Fatal(err)
		}
		if f2, err := ParseForward(again); err != nil || !bytes.Equal(f2.Node, forward.Node) || !bytes.Equal(f2.Packet, forward.Packet) {
			t.Fatalf("% x: %+v, %v", b, f2, err)
		}
	})
}
