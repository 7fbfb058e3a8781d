// Package operational makes operational messages as XML, the content of a SOAP body, and reads them.
package operational

import (
	"cmp"
	_ "embed" // for the schema
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/wording"
)

// Schema is the XML schema of the messages.
//
//go:embed operational.xsd
var Schema []byte

// Message is the content of a message.
type Message struct {
	Sender    string
	Receivers []string
	// Precedence is ROUTINE if empty, Classification UNCLASSIFIED.
	Precedence, Classification string
	Text                       string
}

var (
	precedences     = []string{"ROUTINE", "PRIORITY", "IMMEDIATE", "FLASH"}
	classifications = []string{"UNCLASSIFIED", "RESTRICTED", "CONFIDENTIAL", "SECRET"}
)

// form has the elements of the XML, in order.
type form struct {
	XMLName                 xml.Name `xml:"urn:vignette:operational OperationalMessage"`
	ID                      string   `xml:"messageId"`
	Sender                  string   `xml:"sender"`
	Receivers               []string `xml:"receiver"`
	Precedence              string   `xml:"precedence"`
	DateTimeGroup           string   `xml:"dateTimeGroup"`
	SendingTimeMilliseconds int64    `xml:"sendingTime"`
	Classification          string   `xml:"classification"`
	Text                    string   `xml:"text"`
}

// Append appends a message with an id, made at a time, to dst.
func Append(dst []byte, m Message, id string, at time.Time) ([]byte, error) {
	m.Precedence, m.Classification = cmp.Or(m.Precedence, precedences[0]), cmp.Or(m.Classification, classifications[0])
	if err := check(m, id, at); err != nil {
		return dst, err
	}
	f := form{ID: id, Sender: m.Sender, Receivers: m.Receivers, Precedence: m.Precedence, DateTimeGroup: DateTimeGroup(at),
		SendingTimeMilliseconds: at.UnixMilli(), Classification: m.Classification, Text: m.Text}
	text, _ := xml.Marshal(f) // strings and a number always encode
	return append(dst, text...), nil
}

func check(m Message, id string, at time.Time) error {
	switch {
	case id == "":
		return fmt.Errorf("messageId is empty: want the id of the message")
	case m.Sender == "":
		return fmt.Errorf("sender is empty: want the name of the sending unit")
	case len(m.Receivers) == 0 || slices.Contains(m.Receivers, ""):
		return fmt.Errorf("receivers %q: want the name of each receiving unit", m.Receivers)
	case !slices.Contains(precedences, m.Precedence):
		return fmt.Errorf("precedence %q: want %s", m.Precedence, wording.Or(precedences))
	case !slices.Contains(classifications, m.Classification):
		return fmt.Errorf("classification %q: want %s", m.Classification, wording.Or(classifications))
	case at.UnixMilli() < 0:
		return fmt.Errorf("sendingTime %s: want a time since 1970", at.UTC().Format(time.RFC3339))
	}
	return nil
}

// DateTimeGroup returns a time as DDHHMMZMONYY in UTC.
func DateTimeGroup(at time.Time) string {
	return strings.ToUpper(at.UTC().Format("021504ZJan06"))
}

// Read returns the content of a message.
func Read(message []byte) (m Message, id string, at time.Time, ok bool) {
	var f form
	if xml.Unmarshal(message, &f) != nil || f.ID == "" {
		return m, "", at, false
	}
	if f.SendingTimeMilliseconds > 0 {
		at = time.UnixMilli(f.SendingTimeMilliseconds)
	}
	return Message{f.Sender, f.Receivers, f.Precedence, f.Classification, f.Text}, f.ID, at, true
}
