package wire

import (
	"encoding/xml"
	"errors"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/soap"
)

// declaration of the prefix that bodies use without declaring it.
const declaration = ` xmlns:wsnt="` + NSBase + `"`

// Envelope makes a message around a body of this package.
func Envelope(v soap.Version, h soap.Header, body string) []byte {
	return soap.Envelope(v, h, declaration, body)
}

// FaultEnvelope makes the fault that answers a request.
func FaultEnvelope(v soap.Version, relatesTo string, f *Fault, now time.Time) []byte {
	code, action := soap.Sender, actionFault
	switch f.Kind {
	case ServerBusy:
		code, action = soap.Receiver, soap.ActionFault
	case MustUnderstand:
		code, action = soap.MustUnderstand, soap.ActionFault
	case MalformedMessage:
		action = soap.ActionFault
	}
	reason, detail := f.Reason, f.detail(now)
	if detail != "" {
		reason = f.Error()
		detail = fmt.Sprintf(` xmlns:wsrf-bf="%s" xmlns:wsbr="%s" xmlns:wsrf-r="%s">%s`, NSBaseFaults, NSBrokered, NSResource, detail)
	}
	h := soap.Header{Action: action, MessageID: soap.NewMessageID(), RelatesTo: relatesTo}
	return soap.FaultEnvelope(v, h, declaration, &soap.Fault{Code: code, Reason: reason}, detail)
}

// ParseMessage reads an envelope. A fault in it is returned as an error of type *Fault.
func ParseMessage(data []byte) (*soap.Message, error) {
	m, err := soap.ParseMessage(data, xml.Name{Space: NSBase, Local: "Message"})
	if refusal, ok := errors.AsType[*soap.Fault](err); ok {
		return m, &Fault{Kind: kindOf(refusal.Code), Reason: refusal.Reason}
	}
	if m.Fault != nil {
		return m, parseFault(m.Fault)
	}
	return m, nil
}
