// Package soap reads and writes the envelopes of SOAP 1.1 and 1.2 with WS-Addressing 1.0.
package soap

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"mime"
	"slices"
	"strings"
)

// Namespaces, and addresses that WS-Addressing defines.
const (
	NSAddressing = "http://www.w3.org/2005/08/addressing"
	NSSOAP11     = "http://schemas.xmlsoap.org/soap/envelope/"
	NSSOAP12     = "http://www.w3.org/2003/05/soap-envelope"
	nsXML        = "http://www.w3.org/XML/1998/namespace"
	// Anonymous is the address of whoever sent the request, None that of nobody.
	Anonymous = NSAddressing + "/anonymous"
	None      = NSAddressing + "/none"
	// ActionFault is the action of a fault that has no other.
	ActionFault = NSAddressing + "/soap/fault"
)

// Version of SOAP.
type Version int

// Versions of SOAP.
const (
	SOAP11 Version = iota
	SOAP12
)

// Namespace returns that of the envelope.
func (v Version) Namespace() string {
	if v == SOAP12 {
		return NSSOAP12
	}
	return NSSOAP11
}

// ContentType returns a message's content type in HTTP.
func (v Version) ContentType(action string) string {
	if v == SOAP12 {
		return mime.FormatMediaType("application/soap+xml", map[string]string{"charset": "utf-8", "action": action})
	}
	return "text/xml; charset=utf-8"
}

// ResponseAction returns the action of the response to a request.
func ResponseAction(request string) string {
	if name, ok := strings.CutSuffix(request, "Request"); ok && name != "" {
		return name + "Response"
	}
	return request
}

// EPR is an endpoint reference of WS-Addressing.
type EPR struct {
	Address string
	// Parameters are reference parameters, which go into the headers of messages to it. Each is an element.
	Parameters [][]byte
}

// Append writes the reference as an element of a name.
func (e EPR) Append(b *strings.Builder, name string) {
	fmt.Fprintf(b, `<%s><wsa:Address>%s</wsa:Address>`, name, Escape(e.Address))
	if len(e.Parameters) > 0 {
		b.WriteString(`<wsa:ReferenceParameters>`)
		for _, p := range e.Parameters {
			b.Write(p)
		}
		b.WriteString(`</wsa:ReferenceParameters>`)
	}
	fmt.Fprintf(b, `</%s>`, name)
}

// ParseEPR reads an element that Append writes.
func ParseEPR(e *Element) EPR {
	var epr EPR
	if address := e.Child(NSAddressing, "Address"); address != nil {
		epr.Address = strings.TrimSpace(address.Text)
	}
	if parameters := e.Child(NSAddressing, "ReferenceParameters"); parameters != nil {
		for _, p := range parameters.Children {
			epr.Parameters = append(epr.Parameters, slices.Clone(p.Standalone()))
		}
	}
	return epr
}

// Header is the header of a message.
type Header struct {
	Action, MessageID, RelatesTo string
	To                           EPR
	// ReplyTo is an address; empty if absent, which means Anonymous.
	ReplyTo string
}

// NewMessageID returns a random UUID (version 4) as a URN.
func NewMessageID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails, by its documentation
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	h := hex.EncodeToString(u[:])
	return "urn:uuid:" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Envelope makes a message around a body. Without an action it has no headers, as in the answer to a request without WS-Addressing. The
// prefixes soap and wsa are declared, and what declarations say, such as ` xmlns:a="urn:a"`.
func Envelope(v Version, h Header, declarations, body string) []byte {
	var b strings.Builder
	b.Grow(len(body) + 700)
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?><soap:Envelope xmlns:soap="%s" xmlns:wsa="%s"%s>`, v.Namespace(), NSAddressing, declarations)
	if h.Action == "" {
		b.WriteString(`<soap:Body>` + body + `</soap:Body></soap:Envelope>`)
		return []byte(b.String())
	}
	fmt.Fprintf(&b, `<soap:Header><wsa:Action>%s</wsa:Action><wsa:MessageID>%s</wsa:MessageID>`, Escape(h.Action), Escape(h.MessageID))
	if h.RelatesTo != "" {
		fmt.Fprintf(&b, `<wsa:RelatesTo>%s</wsa:RelatesTo>`, Escape(h.RelatesTo))
	}
	if h.To.Address != "" {
		fmt.Fprintf(&b, `<wsa:To>%s</wsa:To>`, Escape(h.To.Address))
	}
	if h.ReplyTo != "" {
		EPR{Address: h.ReplyTo}.Append(&b, "wsa:ReplyTo")
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

// FaultCode says whose fault it is, in SOAP 1.2's words.
type FaultCode string

// Codes of faults.
const (
	// Sender: the message was wrong.
	Sender FaultCode = "Sender"
	// Receiver could not process the message.
	Receiver FaultCode = "Receiver"
	// MustUnderstand: a header that has to be understood is not.
	MustUnderstand FaultCode = "MustUnderstand"
)

// names11 has SOAP 1.1's words for some.
var names11 = map[FaultCode]string{Sender: "Client", Receiver: "Server"}

// Fault is a service's error answer.
type Fault struct {
	Code FaultCode
	// Reason for people.
	Reason string
	// Detail is the first element of the detail; nil for none.
	Detail *Element
}

// Error returns the text for people.
func (f *Fault) Error() string { return f.Reason }

func faultf(code FaultCode, format string, args ...any) *Fault {
	return &Fault{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// FaultEnvelope makes the fault that answers a request. The detail is what stands within the detail's tag after its name: attributes, > and content.
func FaultEnvelope(v Version, h Header, declarations string, f *Fault, detail string) []byte {
	code := string(f.Code)
	if name, ok := names11[f.Code]; ok && v == SOAP11 {
		code = name
	}
	name, form := "detail", `<soap:Fault><faultcode>soap:%s</faultcode><faultstring>%s</faultstring>%s</soap:Fault>`
	if v == SOAP12 {
		name, form = "soap:Detail", `<soap:Fault><soap:Code><soap:Value>soap:%s</soap:Value></soap:Code><soap:Reason><soap:Text xml:lang="en">%s</soap:Text></soap:Reason>%s</soap:Fault>`
	}
	if detail != "" {
		detail = "<" + name + detail + "</" + name + ">"
	}
	return Envelope(v, h, declarations, fmt.Sprintf(form, code, Escape(f.Reason), detail))
}

// Message is a parsed envelope.
type Message struct {
	Header
	SOAP Version
	// Body is the element in the body; nil for none.
	Body *Element
	// Fault is what the body says if it is a fault.
	Fault *Fault
}

// ParseMessage reads an envelope. The error is the *Fault to answer with. Of what stands in the elements named opaque only the outermost elements are kept.
func ParseMessage(data []byte, opaque ...xml.Name) (*Message, error) {
	root, err := ParseXML(data, opaque...)
	if err != nil {
		return nil, &Fault{Code: Sender, Reason: err.Error()}
	}
	m := &Message{}
	switch root.Name.Space {
	case NSSOAP11:
	case NSSOAP12:
		m.SOAP = SOAP12
	default:
		return nil, faultf(Sender, "element {%s}%s: want an Envelope of SOAP 1.1 or 1.2", root.Name.Space, root.Name.Local)
	}
	ns := root.Name.Space
	if root.Name.Local != "Envelope" {
		return nil, faultf(Sender, "element %s: want an Envelope", root.Name.Local)
	}
	body := root.Child(ns, "Body")
	if body == nil || len(body.Children) > 1 {
		return nil, faultf(Sender, "want one Body with one element at most")
	}
	if err := m.header(root.Child(ns, "Header"), ns); err != nil {
		return m, err
	}
	if len(body.Children) == 0 {
		return m, nil
	}
	m.Body = body.Children[0]
	if m.Body.Is(ns, "Fault") {
		// Its elements may not have been kept.
		fault, err := ParseXML(m.Body.Standalone())
		if err != nil {
			return m, &Fault{Code: Sender, Reason: err.Error()}
		}
		m.Fault = parseFault(fault)
	}
	return m, nil
}

// parseFault reads a fault of either version.
func parseFault(e *Element) *Fault {
	f, ns := &Fault{Code: Receiver}, e.Name.Space
	code, reason, detail := e.Child(ns, "Code").Child(ns, "Value"), e.Child(ns, "Reason").Child(ns, "Text"), e.Child(ns, "Detail")
	if ns == NSSOAP11 {
		code, reason, detail = e.Child("", "faultcode"), e.Child("", "faultstring"), e.Child("", "detail")
	}
	if reason != nil {
		f.Reason = strings.TrimSpace(reason.Text)
	}
	if code != nil {
		name := strings.TrimSpace(code.Text)
		name = name[strings.LastIndex(name, ":")+1:]
		for _, known := range []FaultCode{Sender, MustUnderstand} {
			if name == string(known) || name == names11[known] {
				f.Code = known
			}
		}
	}
	if detail != nil && len(detail.Children) > 0 {
		f.Detail = detail.Children[0]
	}
	return f
}

// header reads WS-Addressing's headers, and refuses any other that is marked mustUnderstand. The refusal needs the headers after it too.
func (m *Message) header(header *Element, ns string) (refused error) {
	if header == nil {
		return nil
	}
	for _, e := range header.Children {
		text := strings.TrimSpace(e.Text)
		switch {
		case e.Is(NSAddressing, "Action"):
			m.Action = text
		case e.Is(NSAddressing, "MessageID"):
			m.MessageID = text
		case e.Is(NSAddressing, "RelatesTo"):
			m.RelatesTo = text
		case e.Is(NSAddressing, "To"):
			m.To.Address = text
		case e.Is(NSAddressing, "ReplyTo"):
			m.ReplyTo = ParseEPR(e).Address
		case e.Name.Space != NSAddressing && mustUnderstand(e, ns):
			refused = faultf(MustUnderstand, "header {%s}%s is not understood", e.Name.Space, e.Name.Local)
		}
	}
	return refused
}

func mustUnderstand(e *Element, ns string) bool {
	for _, a := range e.Attr {
		if a.Name.Space == ns && a.Name.Local == "mustUnderstand" {
			return a.Value == "1" || a.Value == "true"
		}
	}
	return false
}
