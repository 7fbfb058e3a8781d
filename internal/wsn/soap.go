package wsn

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"mime"
	"strings"
	"time"
)

// SOAP is a version of SOAP.
type SOAP int

// Versions of SOAP. Requests use 1.1 by default, which all implementations of WS-Notification support.
const (
	SOAP11 SOAP = iota
	SOAP12
)

func (v SOAP) namespace() string {
	if v == SOAP12 {
		return nsSOAP12
	}
	return nsSOAP11
}

// ContentType returns a message's content type in HTTP.
func (v SOAP) ContentType(action string) string {
	if v == SOAP12 {
		return mime.FormatMediaType("application/soap+xml", map[string]string{"charset": "utf-8", "action": action})
	}
	return "text/xml; charset=utf-8"
}

// EPR is an endpoint reference of WS-Addressing.
type EPR struct {
	Address string
	// Parameters are reference parameters, which go into the headers of messages to it. Each is an element.
	Parameters [][]byte
}

// Header is the header of a message.
type Header struct {
	Action, MessageID, RelatesTo string
	To                           EPR
}

// NewMessageID returns a random UUID (version 4) as a URN.
func NewMessageID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails, by its documentation
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	h := hex.EncodeToString(u[:])
	return "urn:uuid:" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Envelope makes a message around a body. Without an action it has no headers, as in the answer to a request without WS-Addressing. All prefixes
// of this package's bodies are declared here or in them.
func Envelope(v SOAP, h Header, body string) []byte {
	var b strings.Builder
	b.Grow(len(body) + 700)
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?><soap:Envelope xmlns:soap="%s" xmlns:wsa="%s" xmlns:wsnt="%s">`, v.namespace(), NSAddressing, NSBase)
	if h.Action == "" {
		b.WriteString(`<soap:Body>` + body + `</soap:Body></soap:Envelope>`)
		return []byte(b.String())
	}
	fmt.Fprintf(&b, `<soap:Header><wsa:Action>%s</wsa:Action><wsa:MessageID>%s</wsa:MessageID>`, escape(h.Action), escape(h.MessageID))
	if h.RelatesTo != "" {
		fmt.Fprintf(&b, `<wsa:RelatesTo>%s</wsa:RelatesTo>`, escape(h.RelatesTo))
	}
	if h.To.Address != "" {
		fmt.Fprintf(&b, `<wsa:To>%s</wsa:To>`, escape(h.To.Address))
	}
	for _, p := range h.To.Parameters {
		b.Write(referenceParameter(p))
	}
	b.WriteString(`</soap:Header><soap:Body>`)
	b.WriteString(body)
	b.WriteString(`</soap:Body></soap:Envelope>`)
	return []byte(b.String())
}

// referenceParameter marks an element as one (WS-Addressing 1.0 SOAP Binding, 3.4).
func referenceParameter(p []byte) []byte {
	text := string(p)
	name := strings.IndexAny(text, " \t\r\n/>")
	if name < 0 || strings.Contains(text, "IsReferenceParameter") || strings.Contains(text, "xmlns:wsa=") {
		return p
	}
	return []byte(text[:name] + ` wsa:IsReferenceParameter="true"` + text[name:])
}

// FaultEnvelope makes the fault that answers a request.
func FaultEnvelope(v SOAP, relatesTo string, f *Fault, now time.Time) []byte {
	client, server := "soap:Client", "soap:Server"
	if v == SOAP12 {
		client, server = "soap:Sender", "soap:Receiver"
	}
	code, action := client, actionFault
	switch f.Kind {
	case ServerBusy:
		code, action = server, actionSOAPFault
	case MustUnderstand:
		code, action = "soap:MustUnderstand", actionSOAPFault
	case MalformedMessage:
		action = actionSOAPFault
	}
	detail := f.detail(now)
	if detail != "" {
		detail = fmt.Sprintf(` xmlns:wsrf-bf="%s" xmlns:wsbr="%s" xmlns:wsrf-r="%s">%s`, NSBaseFaults, NSBrokered, NSResource, detail)
	}
	var body string
	if v == SOAP12 {
		if detail != "" {
			detail = "<soap:Detail" + detail + "</soap:Detail>"
		}
		body = fmt.Sprintf(`<soap:Fault><soap:Code><soap:Value>%s</soap:Value></soap:Code><soap:Reason><soap:Text xml:lang="en">%s</soap:Text></soap:Reason>%s</soap:Fault>`,
			code, escape(f.Error()), detail)
	} else {
		if detail != "" {
			detail = "<detail" + detail + "</detail>"
		}
		body = fmt.Sprintf(`<soap:Fault><faultcode>%s</faultcode><faultstring>%s</faultstring>%s</soap:Fault>`, code, escape(f.Error()), detail)
	}
	return Envelope(v, Header{Action: action, MessageID: NewMessageID(), RelatesTo: relatesTo}, body)
}

// Message is a parsed envelope.
type Message struct {
	Header
	SOAP SOAP
	// Body is the element in the body; nil for none.
	Body *Element
}

// ParseMessage reads an envelope. A fault in it is returned as an error of type *Fault.
func ParseMessage(data []byte) (*Message, error) {
	root, err := ParseXML(data)
	if err != nil {
		return nil, &Fault{Kind: MalformedMessage, Reason: err.Error()}
	}
	m := &Message{}
	switch root.Name.Space {
	case nsSOAP11:
	case nsSOAP12:
		m.SOAP = SOAP12
	default:
		return nil, faultf(MalformedMessage, "element {%s}%s: want an Envelope of SOAP 1.1 or 1.2", root.Name.Space, root.Name.Local)
	}
	ns := root.Name.Space
	if root.Name.Local != "Envelope" {
		return nil, faultf(MalformedMessage, "element %s: want an Envelope", root.Name.Local)
	}
	body := root.Child(ns, "Body")
	if body == nil || len(body.Children) > 1 {
		return nil, faultf(MalformedMessage, "want one Body with one element at most")
	}
	if err := m.header(root.Child(ns, "Header"), ns); err != nil {
		return m, err
	}
	if len(body.Children) == 0 {
		return m, nil
	}
	m.Body = body.Children[0]
	if m.Body.Name.Space == ns && m.Body.Name.Local == "Fault" {
		return m, parseFault(m.Body)
	}
	return m, nil
}

// header reads WS-Addressing's headers, and refuses any other that is marked mustUnderstand.
func (m *Message) header(header *Element, ns string) error {
	if header == nil {
		return nil
	}
	for _, e := range header.Children {
		text := strings.TrimSpace(e.Text)
		switch {
		case e.Name.Space == NSAddressing && e.Name.Local == "Action":
			m.Action = text
		case e.Name.Space == NSAddressing && e.Name.Local == "MessageID":
			m.MessageID = text
		case e.Name.Space == NSAddressing && e.Name.Local == "RelatesTo":
			m.RelatesTo = text
		case e.Name.Space == NSAddressing && e.Name.Local == "To":
			m.To.Address = text
		case e.Name.Space != NSAddressing && mustUnderstand(e, ns):
			return faultf(MustUnderstand, "header {%s}%s is not understood", e.Name.Space, e.Name.Local)
		}
	}
	return nil
}

func mustUnderstand(e *Element, ns string) bool {
	for _, a := range e.Attr {
		if a.Name.Space == ns && a.Name.Local == "mustUnderstand" {
			return a.Value == "1" || a.Value == "true"
		}
	}
	return false
}
