package wire

import (
	"encoding/binary"
	"fmt"

	"vignette.dev/vignette/internal/traffic/mqttsn"
)

// Bits of the flags (5.3.4).
const (
	flagDUP          = 0x80
	flagQoS          = 0x60
	flagRetain       = 0x10
	flagWill         = 0x08
	flagCleanSession = 0x04
	flagKind         = 0x03
)

func bit(on bool, mask byte) byte {
	if on {
		return mask
	}
	return 0
}

// qosFlag encodes a QoS: 0, 1, 2, and 3 for -1.
func qosFlag(qos int) byte { return byte(qos&3) << 5 }

func flagToQoS(flags byte) int {
	if qos := int(flags&flagQoS) >> 5; qos < 3 {
		return qos
	}
	return mqttsn.QoSMinusOne
}

func validQoS(qos, least int) error {
	if qos < least || qos > 2 {
		return fmt.Errorf("QoS is %d: want %d to 2", qos, least)
	}
	return nil
}

func kindOf(flags byte) (TopicKind, error) {
	kind := TopicKind(flags & flagKind)
	if kind > Short {
		return 0, fmt.Errorf("topic id type is %d: want 0 to 2", kind)
	}
	return kind, nil
}

// sized checks the length of a body: at least, or with exactly, a number of octets.
func sized(body []byte, least int, exactly bool) error {
	switch {
	case len(body) < least:
		return fmt.Errorf("%d octets follow the type: want %d at least", len(body), least)
	case exactly && len(body) > least:
		return fmt.Errorf("%d octets follow the type: want %d", len(body), least)
	}
	return nil
}

func u16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }

func put16(dst []byte, values ...uint16) []byte {
	for _, v := range values {
		dst = binary.BigEndian.AppendUint16(dst, v)
	}
	return dst
}

// Advertise announces a gateway, again after Duration.
type Advertise struct {
	GatewayID       byte
	DurationSeconds uint16
}

// SearchGW asks for a gateway.
type SearchGW struct{ Radius byte }

// GWInfo answers SearchGW. Address is the gateway's if a client answers for it, else empty.
type GWInfo struct {
	GatewayID byte
	Address   []byte
}

// Connect sets up a connection.
type Connect struct {
	Will, CleanSession bool
	// KeepAliveSeconds of the connection; 0 for none.
	KeepAliveSeconds uint16
	ClientID         string
}

// Connack answers Connect.
type Connack struct{ Code ReturnCode }

// WillTopicReq asks for the will's topic.
type WillTopicReq struct{}

// WillTopic is the will's topic; an empty one, with nothing else, deletes the will.
type WillTopic struct {
	QoS    int
	Retain bool
	Topic  string
}

// WillMsgReq asks for the will's message.
type WillMsgReq struct{}

// WillMsg is the will's message.
type WillMsg struct{ Message []byte }

// Register gives a topic an id. From a client the id is 0, as the gateway chooses it.
type Register struct {
	TopicID, MsgID uint16
	Topic          string
}

// Regack answers Register.
type Regack struct {
	TopicID, MsgID uint16
	Code           ReturnCode
}

// Publish is a message. MsgID is 0 with QoS 0 and -1.
type Publish struct {
	DUP     bool
	QoS     int
	Retain  bool
	Kind    TopicKind
	TopicID uint16
	MsgID   uint16
	Data    []byte
}

// Puback answers a Publish of QoS 1, and one of any QoS that is rejected.
type Puback struct {
	TopicID, MsgID uint16
	Code           ReturnCode
}

// Pubrec answers a Publish of QoS 2.
type Pubrec struct{ MsgID uint16 }

// Pubrel answers Pubrec.
type Pubrel struct{ MsgID uint16 }

// Pubcomp answers Pubrel.
type Pubcomp struct{ MsgID uint16 }

// Subscribe to a topic: Topic holds a name or filter (kind Registered) or a short name, TopicID one that is predefined.
type Subscribe struct {
	DUP     bool
	QoS     int
	Kind    TopicKind
	MsgID   uint16
	TopicID uint16
	Topic   string
}

// Suback answers Subscribe. TopicID is 0 where the filter has wildcards.
type Suback struct {
	QoS            int
	TopicID, MsgID uint16
	Code           ReturnCode
}

// Unsubscribe is like Subscribe.
type Unsubscribe struct {
	Kind    TopicKind
	MsgID   uint16
	TopicID uint16
	Topic   string
}

// Unsuback answers Unsubscribe.
type Unsuback struct{ MsgID uint16 }

// Pingreq asks whether the other side is there; with a client id it asks for the messages of a client that sleeps.
type Pingreq struct{ ClientID string }

// Pingresp answers Pingreq.
type Pingresp struct{}

// Disconnect ends a connection; with Sleep the client is asleep, and looks for messages within SleepSeconds.
type Disconnect struct {
	Sleep        bool
	SleepSeconds uint16
}

// WillTopicUpd changes the will's topic; an empty one deletes the will.
type WillTopicUpd WillTopic

// WillTopicResp answers WillTopicUpd.
type WillTopicResp struct{ Code ReturnCode }

// WillMsgUpd changes the will's message.
type WillMsgUpd WillMsg

// WillMsgResp answers WillMsgUpd.
type WillMsgResp struct{ Code ReturnCode }

func (*Advertise) kind() Type     { return TypeAdvertise }
func (*SearchGW) kind() Type      { return TypeSearchGW }
func (*GWInfo) kind() Type        { return TypeGWInfo }
func (*Connect) kind() Type       { return TypeConnect }
func (*Connack) kind() Type       { return TypeConnack }
func (*WillTopicReq) kind() Type  { return TypeWillTopicReq }
func (*WillTopic) kind() Type     { return TypeWillTopic }
func (*WillMsgReq) kind() Type    { return TypeWillMsgReq }
func (*WillMsg) kind() Type       { return TypeWillMsg }
func (*Register) kind() Type      { return TypeRegister }
func (*Regack) kind() Type        { return TypeRegack }
func (*Publish) kind() Type       { return TypePublish }
func (*Puback) kind() Type        { return TypePuback }
func (*Pubcomp) kind() Type       { return TypePubcomp }
func (*Pubrec) kind() Type        { return TypePubrec }
func (*Pubrel) kind() Type        { return TypePubrel }
func (*Subscribe) kind() Type     { return TypeSubscribe }
func (*Suback) kind() Type        { return TypeSuback }
func (*Unsubscribe) kind() Type   { return TypeUnsubscribe }
func (*Unsuback) kind() Type      { return TypeUnsuback }
func (*Pingreq) kind() Type       { return TypePingreq }
func (*Pingresp) kind() Type      { return TypePingresp }
func (*Disconnect) kind() Type    { return TypeDisconnect }
func (*WillTopicUpd) kind() Type  { return TypeWillTopicUpd }
func (*WillTopicResp) kind() Type { return TypeWillTopicResp }
func (*WillMsgUpd) kind() Type    { return TypeWillMsgUpd }
func (*WillMsgResp) kind() Type   { return TypeWillMsgResp }

func (p *Advertise) body(dst []byte) []byte {
	return put16(append(dst, p.GatewayID), p.DurationSeconds)
}

func (p *Advertise) parse(b []byte) error {
	if err := sized(b, 3, true); err != nil {
		return err
	}
	p.GatewayID, p.DurationSeconds = b[0], u16(b[1:])
	return nil
}

func (p *SearchGW) body(dst []byte) []byte { return append(dst, p.Radius) }

func (p *SearchGW) parse(b []byte) error {
	if err := sized(b, 1, true); err != nil {
		return err
	}
	p.Radius = b[0]
	return nil
}

func (p *GWInfo) body(dst []byte) []byte { return append(append(dst, p.GatewayID), p.Address...) }

func (p *GWInfo) parse(b []byte) error {
	if err := sized(b, 1, false); err != nil {
		return err
	}
	p.GatewayID, p.Address = b[0], b[1:]
	return nil
}

func (p *Connect) body(dst []byte) []byte {
	dst = append(dst, bit(p.Will, flagWill)|bit(p.CleanSession, flagCleanSession), protocolID)
	return append(put16(dst, p.KeepAliveSeconds), p.ClientID...)
}

func (p *Connect) parse(b []byte) error {
	if err := sized(b, 5, false); err != nil {
		return err
	}
	if b[1] != protocolID {
		return fmt.Errorf("protocol id is %d: want %d", b[1], protocolID)
	}
	*p = Connect{Will: b[0]&flagWill != 0, CleanSession: b[0]&flagCleanSession != 0, KeepAliveSeconds: u16(b[2:]), ClientID: string(b[4:])}
	return nil
}

func (p *Connect) valid() error {
	if p.ClientID == "" {
		return fmt.Errorf("CONNECT: client id is empty: want 1 to %d characters", MaxClientID)
	}
	return nil
}

func parseCode(code *ReturnCode, b []byte) error {
	if err := sized(b, 1, true); err != nil {
		return err
	}
	*code = ReturnCode(b[0])
	return nil
}

func (p *Connack) body(dst []byte) []byte       { return append(dst, byte(p.Code)) }
func (p *Connack) parse(b []byte) error         { return parseCode(&p.Code, b) }
func (p *WillTopicResp) body(dst []byte) []byte { return append(dst, byte(p.Code)) }
func (p *WillTopicResp) parse(b []byte) error   { return parseCode(&p.Code, b) }
func (p *WillMsgResp) body(dst []byte) []byte   { return append(dst, byte(p.Code)) }
func (p *WillMsgResp) parse(b []byte) error     { return parseCode(&p.Code, b) }

func (*WillTopicReq) body(dst []byte) []byte { return dst }
func (*WillTopicReq) parse(b []byte) error   { return sized(b, 0, true) }
func (*WillMsgReq) body(dst []byte) []byte   { return dst }
func (*WillMsgReq) parse(b []byte) error     { return sized(b, 0, true) }
func (*Pingresp) body(dst []byte) []byte     { return dst }
func (*Pingresp) parse(b []byte) error       { return sized(b, 0, true) }

func (p *WillTopic) body(dst []byte) []byte {
	if p.Topic == "" {
		return dst
	}
	return append(append(dst, qosFlag(p.QoS)|bit(p.Retain, flagRetain)), p.Topic...)
}

func (p *WillTopic) parse(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	*p = WillTopic{QoS: flagToQoS(b[0]), Retain: b[0]&flagRetain != 0, Topic: string(b[1:])}
	if p.Topic == "" { // flags alone say nothing
		*p = WillTopic{}
	}
	return p.valid()
}

func (p *WillTopic) valid() error              { return validQoS(p.QoS, 0) }
func (p *WillTopicUpd) body(dst []byte) []byte { return (*WillTopic)(p).body(dst) }
func (p *WillTopicUpd) parse(b []byte) error   { return (*WillTopic)(p).parse(b) }
func (p *WillTopicUpd) valid() error           { return validQoS(p.QoS, 0) }

func (p *WillMsg) body(dst []byte) []byte { return append(dst, p.Message...) }

func (p *WillMsg) parse(b []byte) error {
	p.Message = b
	return nil
}

func (p *WillMsgUpd) body(dst []byte) []byte { return append(dst, p.Message...) }

func (p *WillMsgUpd) parse(b []byte) error {
	p.Message = b
	return nil
}

func (p *Register) body(dst []byte) []byte { return append(put16(dst, p.TopicID, p.MsgID), p.Topic...) }

func (p *Register) parse(b []byte) error {
	if err := sized(b, 5, false); err != nil {
		return err
	}
	*p = Register{TopicID: u16(b), MsgID: u16(b[2:]), Topic: string(b[4:])}
	return nil
}

func (p *Register) valid() error {
	if p.Topic == "" {
		return fmt.Errorf("REGISTER: topic is empty")
	}
	return nil
}

func acknowledgement(dst []byte, topic, msg uint16, code ReturnCode) []byte {
	return append(put16(dst, topic, msg), byte(code))
}

func parseAcknowledgement(b []byte, topic, msg *uint16, code *ReturnCode) error {
	if err := sized(b, 5, true); err != nil {
		return err
	}
	*topic, *msg, *code = u16(b), u16(b[2:]), ReturnCode(b[4])
	return nil
}

func (p *Regack) body(dst []byte) []byte { return acknowledgement(dst, p.TopicID, p.MsgID, p.Code) }
func (p *Regack) parse(b []byte) error {
	return parseAcknowledgement(b, &p.TopicID, &p.MsgID, &p.Code)
}
func (p *Puback) body(dst []byte) []byte { return acknowledgement(dst, p.TopicID, p.MsgID, p.Code) }
func (p *Puback) parse(b []byte) error {
	return parseAcknowledgement(b, &p.TopicID, &p.MsgID, &p.Code)
}

func (p *Publish) body(dst []byte) []byte {
	dst = append(dst, bit(p.DUP, flagDUP)|qosFlag(p.QoS)|bit(p.Retain, flagRetain)|byte(p.Kind))
	return append(put16(dst, p.TopicID, p.MsgID), p.Data...)
}

func (p *Publish) parse(b []byte) error {
	if err := sized(b, 5, false); err != nil {
		return err
	}
	kind, err := kindOf(b[0])
	*p = Publish{DUP: b[0]&flagDUP != 0, QoS: flagToQoS(b[0]), Retain: b[0]&flagRetain != 0, Kind: kind, TopicID: u16(b[1:]), MsgID: u16(b[3:]), Data: b[5:]}
	return err
}

func (p *Publish) valid() error { return validQoS(p.QoS, mqttsn.QoSMinusOne) }

func parseMsgID(id *uint16, b []byte) error {
	if err := sized(b, 2, true); err != nil {
		return err
	}
	*id = u16(b)
	return nil
}

func (p *Pubrec) body(dst []byte) []byte   { return put16(dst, p.MsgID) }
func (p *Pubrec) parse(b []byte) error     { return parseMsgID(&p.MsgID, b) }
func (p *Pubrel) body(dst []byte) []byte   { return put16(dst, p.MsgID) }
func (p *Pubrel) parse(b []byte) error     { return parseMsgID(&p.MsgID, b) }
func (p *Pubcomp) body(dst []byte) []byte  { return put16(dst, p.MsgID) }
func (p *Pubcomp) parse(b []byte) error    { return parseMsgID(&p.MsgID, b) }
func (p *Unsuback) body(dst []byte) []byte { return put16(dst, p.MsgID) }
func (p *Unsuback) parse(b []byte) error   { return parseMsgID(&p.MsgID, b) }

// appendTopic appends the topic of a subscription.
func appendTopic(dst []byte, kind TopicKind, id uint16, topic string) []byte {
	if kind == Predefined {
		return put16(dst, id)
	}
	return append(dst, topic...)
}

func parseTopic(b []byte, kind TopicKind, id *uint16, topic *string) error {
	if kind == Registered {
		*topic = string(b)
		return sized(b, 1, false)
	}
	if err := sized(b, 2, true); err != nil {
		return err
	}
	if kind == Predefined {
		*id = u16(b)
	} else {
		*topic = string(b)
	}
	return nil
}

func validTopic(kind TopicKind, topic string) error {
	if kind == Short && len(topic) != 2 || kind == Registered && topic == "" {
		return fmt.Errorf("topic %q: want 2 characters for a short name, 1 at least for others", topic)
	}
	return nil
}

func (p *Subscribe) body(dst []byte) []byte {
	dst = put16(append(dst, bit(p.DUP, flagDUP)|qosFlag(p.QoS)|byte(p.Kind)), p.MsgID)
	return appendTopic(dst, p.Kind, p.TopicID, p.Topic)
}

func (p *Subscribe) parse(b []byte) error {
	if err := sized(b, 3, false); err != nil {
		return err
	}
	kind, err := kindOf(b[0])
	if err != nil {
		return err
	}
	*p = Subscribe{DUP: b[0]&flagDUP != 0, QoS: flagToQoS(b[0]), Kind: kind, MsgID: u16(b[1:])}
	if err := validQoS(p.QoS, 0); err != nil {
		return err
	}
	return parseTopic(b[3:], kind, &p.TopicID, &p.Topic)
}

func (p *Subscribe) valid() error {
	if err := validQoS(p.QoS, 0); err != nil {
		return err
	}
	return validTopic(p.Kind, p.Topic)
}

func (p *Suback) body(dst []byte) []byte {
	return acknowledgement(append(dst, qosFlag(p.QoS)), p.TopicID, p.MsgID, p.Code)
}

func (p *Suback) parse(b []byte) error {
	if err := sized(b, 6, true); err != nil {
		return err
	}
	if p.QoS = flagToQoS(b[0]); p.QoS < 0 {
		return validQoS(p.QoS, 0)
	}
	return parseAcknowledgement(b[1:], &p.TopicID, &p.MsgID, &p.Code)
}

func (p *Suback) valid() error { return validQoS(p.QoS, 0) }

func (p *Unsubscribe) body(dst []byte) []byte {
	return appendTopic(put16(append(dst, byte(p.Kind)), p.MsgID), p.Kind, p.TopicID, p.Topic)
}

func (p *Unsubscribe) parse(b []byte) error {
	if err := sized(b, 3, false); err != nil {
		return err
	}
	kind, err := kindOf(b[0])
	if err != nil {
		return err
	}
	*p = Unsubscribe{Kind: kind, MsgID: u16(b[1:])}
	return parseTopic(b[3:], kind, &p.TopicID, &p.Topic)
}

func (p *Unsubscribe) valid() error { return validTopic(p.Kind, p.Topic) }

func (p *Pingreq) body(dst []byte) []byte { return append(dst, p.ClientID...) }

func (p *Pingreq) parse(b []byte) error {
	p.ClientID = string(b)
	return nil
}

func (p *Disconnect) body(dst []byte) []byte {
	if !p.Sleep {
		return dst
	}
	return put16(dst, p.SleepSeconds)
}

func (p *Disconnect) parse(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := sized(b, 2, true); err != nil {
		return err
	}
	p.Sleep, p.SleepSeconds = true, u16(b)
	return nil
}
