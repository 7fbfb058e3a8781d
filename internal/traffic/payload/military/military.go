// Package military makes the messages of the published RESTful messaging experiments (E6) as JSON, on one line:
// {"msgType":"TEXT","from":"a1","to":"b1","text":"…","sendingTime":1588759108433,"msgId":"a1/chat_3"}. msgId is not part of the
// published format; receivers identify messages by it.
package military

import (
	"bytes"
	"cmp"
	_ "embed" // for the schema
	"encoding/json"
	"encoding/xml"
	"time"
)

// Schema is the XML schema of the message's XML.
//
//go:embed military.xsd
var Schema []byte

// Root is the name of the XML's outermost element, which is in no namespace.
const Root = "message"

// Message is the content of a message.
type Message struct{ Type, From, To, Text string }

// Form has the members of the message's JSON, in order. They are the elements of its XML too.
type Form struct {
	Type string `json:"msgType" xml:"msgType"`
	From string `json:"from" xml:"from"`
	To   string `json:"to" xml:"to"`
	Text string `json:"text" xml:"text"`
	// SendingTimeMilliseconds is since the Unix epoch.
	SendingTimeMilliseconds int64  `json:"sendingTime" xml:"sendingTime"`
	ID                      string `json:"msgId" xml:"msgId"`
}

// Append appends a message with an id, made at a time, to dst. If size is larger than the message, its text is padded
// with spaces.
func Append(dst []byte, m Message, id string, at time.Time, size int) []byte {
	f := Form{m.Type, m.From, m.To, m.Text, at.UnixMilli(), id}
	text := encode(f)
	if missing := size - len(text); missing > 0 {
		f.Text += string(bytes.Repeat([]byte(" "), missing))
		text = encode(f)
	}
	return append(dst, text...)
}

func encode(f Form) []byte {
	text, _ := json.Marshal(f) // strings and a number always encode
	return text
}

const (
	// defaultType is the longest replacement for an empty type.
	defaultType = "TEXT"
	// digits of a message's number and of the time that Size leaves room for.
	maxNumber  = "_999999"
	futureTime = 9_999_999_999_999
)

// Size returns the largest size in bytes of an entity's message without padding.
func Size(m Message, entity string) int {
	m.Type = cmp.Or(m.Type, defaultType)
	return len(Append(nil, m, entity+maxNumber, time.UnixMilli(futureTime), 0))
}

// Parse returns the id and the time.
func Parse(payload []byte) (id string, at time.Time, ok bool) {
	if trimmed := bytes.TrimLeft(payload, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return "", at, false
	}
	var f Form
	if json.Unmarshal(payload, &f) != nil || f.ID == "" {
		return "", at, false
	}
	if f.SendingTimeMilliseconds > 0 {
		at = time.UnixMilli(f.SendingTimeMilliseconds)
	}
	return f.ID, at, true
}

// AppendXML appends a message with an id, made at a time, to dst as XML.
func AppendXML(dst []byte, m Message, id string, at time.Time) []byte {
	out := bytes.NewBuffer(dst)
	encoder := xml.NewEncoder(out)
	f := Form{m.Type, m.From, m.To, m.Text, at.UnixMilli(), id}
	_ = encoder.EncodeElement(f, xml.StartElement{Name: xml.Name{Local: Root}}) // strings and a number always encode
	return out.Bytes()
}
