// Package military makes the messages of the published RESTful messaging experiments (E6) as JSON, on one line:
// {"msgType":"TEXT","from":"a1","to":"b1","text":"…","sendingTime":1588759108433,"msgId":"a1/chat_3"}. The id is ours, as receivers
// have to know which message it is.
package military

import (
	"bytes"
	"encoding/json"
	"time"
)

// Message is what a message says.
type Message struct{ Type, From, To, Text string }

// form on the wire; sendingTime in milliseconds since the Unix epoch.
type form struct {
	Type                    string `json:"msgType"`
	From                    string `json:"from"`
	To                      string `json:"to"`
	Text                    string `json:"text"`
	SendingTimeMilliseconds int64  `json:"sendingTime"`
	ID                      string `json:"msgId"`
}

// Append adds a message with an id, made at a time, to dst. Where size is larger than the message, its text is filled up
// with spaces.
func Append(dst []byte, m Message, id string, at time.Time, size int) []byte {
	f := form{m.Type, m.From, m.To, m.Text, at.UnixMilli(), id}
	text := encode(f)
	if missing := size - len(text); missing > 0 {
		f.Text += string(bytes.Repeat([]byte(" "), missing))
		text = encode(f)
	}
	return append(dst, text...)
}

func encode(f form) []byte {
	text, _ := json.Marshal(f) // strings and a number always have a JSON form
	return text
}

const (
	// defaultType is the longest that an empty type is replaced by.
	defaultType = "TEXT"
	// digits of a message's number and of the time, for which Size leaves room.
	maxNumber  = "_999999"
	futureTime = 9_999_999_999_999
)

// Size is the most bytes that a message of an entity has by itself.
func Size(m Message, entity string) int {
	if m.Type == "" {
		m.Type = defaultType
	}
	return len(Append(nil, m, entity+maxNumber, time.UnixMilli(futureTime), 0))
}

// Parse finds the id and the time.
func Parse(payload []byte) (id string, at time.Time, ok bool) {
	if trimmed := bytes.TrimLeft(payload, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return "", at, false
	}
	var f form
	if json.Unmarshal(payload, &f) != nil || f.ID == "" {
		return "", at, false
	}
	if f.SendingTimeMilliseconds > 0 {
		at = time.UnixMilli(f.SendingTimeMilliseconds)
	}
	return f.ID, at, true
}
