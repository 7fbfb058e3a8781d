package wire

import (
	"fmt"
	"strings"
	"time"

	"vignette.dev/vignette/internal/soap"
)

// FaultKind is the element in a fault's detail: prefix and name. The prefixes are those that envelopes declare.
type FaultKind string

// Faults of WS-BaseNotification, WS-BrokeredNotification and WS-Resource, and three of SOAP and WS-Addressing, which have no element.
const (
	SubscribeCreationFailed        FaultKind = "wsnt:SubscribeCreationFailedFault"
	InvalidFilter                  FaultKind = "wsnt:InvalidFilterFault"
	TopicExpressionDialectUnknown  FaultKind = "wsnt:TopicExpressionDialectUnknownFault"
	InvalidTopicExpression         FaultKind = "wsnt:InvalidTopicExpressionFault"
	UnrecognizedPolicyRequest      FaultKind = "wsnt:UnrecognizedPolicyRequestFault"
	UnacceptableInitialTermination FaultKind = "wsnt:UnacceptableInitialTerminationTimeFault"
	UnacceptableTermination        FaultKind = "wsnt:UnacceptableTerminationTimeFault"
	NoCurrentMessageOnTopic        FaultKind = "wsnt:NoCurrentMessageOnTopicFault"
	UnableToCreatePullPoint        FaultKind = "wsnt:UnableToCreatePullPointFault"
	PublisherRegistrationFailed    FaultKind = "wsbr:PublisherRegistrationFailedFault"
	ResourceUnknown                FaultKind = "wsrf-r:ResourceUnknownFault"
	MalformedMessage               FaultKind = ""
	MustUnderstand                 FaultKind = "MustUnderstand"
	ServerBusy                     FaultKind = "Server"
)

// Fault is a service's error answer.
type Fault struct {
	Kind FaultKind
	// Reason for people.
	Reason string
	// Minimum and Maximum are the acceptable limits of termination times, for faults about these.
	MinimumTime time.Time
	// Unknown is the filter of an InvalidFilter as prefix:name with its namespace declared. AppendFault fills it in.
	Unknown *soap.Element
}

// Error returns the text for people.
func (f *Fault) Error() string {
	if f.Kind == "" {
		return f.Reason
	}
	_, name, _ := strings.Cut(":"+strings.TrimPrefix(string(f.Kind), ":"), ":")
	return name + ": " + f.Reason
}

// faultf makes a fault.
func faultf(kind FaultKind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Reason: fmt.Sprintf(format, args...)}
}

func (f *Fault) typed() bool { return strings.Contains(string(f.Kind), ":") }

// detail returns the element with WS-BaseFaults' content.
func (f *Fault) detail(now time.Time) string {
	if !f.typed() {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<%s><wsrf-bf:Timestamp>%s</wsrf-bf:Timestamp><wsrf-bf:Description>%s</wsrf-bf:Description>`, f.Kind, Time(now), soap.Escape(f.Reason))
	switch {
	case f.Kind == InvalidFilter && f.Unknown != nil && f.Unknown.Name.Space == "":
		fmt.Fprintf(&b, `<wsnt:UnknownFilter>%s</wsnt:UnknownFilter>`, soap.Escape(f.Unknown.Name.Local))
	case f.Kind == InvalidFilter && f.Unknown != nil:
		fmt.Fprintf(&b, `<wsnt:UnknownFilter xmlns:f="%s">f:%s</wsnt:UnknownFilter>`, soap.Escape(f.Unknown.Name.Space), soap.Escape(f.Unknown.Name.Local))
	case f.Kind == UnacceptableInitialTermination || f.Kind == UnacceptableTermination:
		fmt.Fprintf(&b, `<wsnt:MinimumTime>%s</wsnt:MinimumTime>`, Time(f.MinimumTime))
	}
	fmt.Fprintf(&b, `</%s>`, f.Kind)
	return b.String()
}

// kindOf is that of a fault without an element in its detail.
func kindOf(code soap.FaultCode) FaultKind {
	switch code {
	case soap.Sender:
		return MalformedMessage
	case soap.MustUnderstand:
		return MustUnderstand
	}
	return ServerBusy
}

// parseFault reads WS-Notification's kind of a fault.
func parseFault(received *soap.Fault) *Fault {
	f := &Fault{Kind: kindOf(received.Code), Reason: received.Reason}
	kind := received.Detail
	if kind == nil {
		return f
	}
	prefix := map[string]string{NSBase: "wsnt:", NSBrokered: "wsbr:"}[kind.Name.Space]
	if strings.HasPrefix(kind.Name.Space, "http://docs.oasis-open.org/wsrf/") {
		prefix = "wsrf-r:"
	}
	if prefix != "" {
		f.Kind = FaultKind(prefix + kind.Name.Local)
	}
	if d := kind.Child(NSBaseFaults, "Description"); d != nil {
		f.Reason = d.Text
	}
	return f
}
