package client

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/exi"
	"vignette.dev/vignette/internal/gz"
	"vignette.dev/vignette/internal/safetext"
	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/request"
	limits "vignette.dev/vignette/internal/traffic/soap"
)

const (
	// actionRequest is that of all requests. The response has that of ResponseAction.
	actionRequest = "https://vignette.dev/soap/Request"
	xmlType       = "application/xml"
	// Attributes of an element around content that is no XML.
	attributeType     = "contentType"
	attributeEncoding = "contentEncoding"
)

// opaque elements: of what stands in a body only the outermost element is kept.
var opaque = []xml.Name{{Space: soap.NSSOAP11, Local: "Body"}, {Space: soap.NSSOAP12, Local: "Body"}}

// content of a request or a response.
type content struct {
	body           []byte
	kind, encoding string
}

// element returns the content as what stands in a body. XML that is not compressed stands there as it is, without what is around its element.
func (c content) element() (string, error) {
	switch {
	case len(c.body) == 0:
		return "", nil
	case c.encoding != "" || !isXML(c.kind):
		attributes := []string{attributeType, c.kind}
		if c.encoding != "" {
			attributes = append(attributes, attributeEncoding, c.encoding)
		}
		return string(soap.Wrap(c.body, attributes...)), nil
	}
	root, err := soap.ParseRoot(c.body)
	if err != nil {
		return "", fmt.Errorf("a body of %s that is no element of XML 1.0 in UTF-8, or has a part that SOAP forbids: %w", c.kind, err)
	}
	return string(root.Standalone()), nil
}

// contentOf returns what stands in a message's body.
func contentOf(m *soap.Message) (content, error) {
	if m.Body == nil {
		return content{}, nil
	}
	body, wrapper, err := soap.Unwrap(m.Body.Standalone())
	if err != nil {
		return content{}, err
	}
	if wrapper == nil {
		return content{body: bytes.Clone(body), kind: xmlType}, nil
	}
	return content{body: body, kind: wrapper.Attribute(attributeType), encoding: wrapper.Attribute(attributeEncoding)}, nil
}

// encodings of envelopes.
var encodings = []string{"", request.EnvelopeGzip, request.EnvelopeEXI}

// isXML reports whether a media type is one of XML (RFC 7303).
func isXML(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/xml" || kind == "text/xml" || strings.HasSuffix(kind, "+xml"))
}

// encode encodes an envelope as a whole.
func encode(name string, envelope []byte) ([]byte, error) {
	switch name {
	case "":
		return envelope, nil
	case request.EnvelopeGzip:
		return gz.Append(nil, envelope), nil
	case request.EnvelopeEXI:
		return exi.Encode(nil, envelope, exi.Options{})
	}
	return nil, unknownEncoding(name)
}

// decode returns an envelope as text.
func decode(name string, data []byte) ([]byte, error) {
	switch name {
	case "":
		return data, nil
	case request.EnvelopeGzip:
		envelope, err := gz.Expand(data, limits.MaxBytes)
		switch {
		case errors.Is(err, gz.ErrTooLarge):
			return nil, fmt.Errorf("an envelope of more than %d bytes", limits.MaxBytes)
		case err != nil:
			return nil, errors.New("the envelope is not compressed by gzip, or not whole")
		}
		return envelope, nil
	case request.EnvelopeEXI:
		return exi.Decode(nil, data, exi.Options{})
	}
	return nil, unknownEncoding(name)
}

// checkEncoding refuses an option that is no encoding.
func checkEncoding(name string) error {
	if !slices.Contains(encodings, name) {
		return unknownEncoding(name)
	}
	return nil
}

func unknownEncoding(name string) error {
	return fmt.Errorf("envelope %q: want none, %s or %s", safetext.Truncate(name), request.EnvelopeGzip, request.EnvelopeEXI)
}

// encodingOf tells an encoding by how a datagram begins.
func encodingOf(datagram []byte) string {
	switch {
	case bytes.HasPrefix(datagram, []byte{0x1f, 0x8b}):
		return request.EnvelopeGzip
	case bytes.HasPrefix(datagram, []byte("$EXI")) || len(datagram) > 0 && datagram[0]&0xc0 == 0x80: // EXI's distinguishing bits
		return request.EnvelopeEXI
	}
	return ""
}

// newRequest returns a request's envelope as text, and its MessageID.
func newRequest(to string, r request.Request, receipt bool) (envelope []byte, id string, err error) {
	body, err := content{r.Body, r.ContentType, r.ContentEncoding}.element()
	if err != nil {
		return nil, "", err
	}
	h := soap.Header{Action: actionRequest, MessageID: soap.NewMessageID(), To: soap.EPR{Address: to}}
	if !receipt {
		h.ReplyTo = soap.None
	}
	return soap.Envelope(soap.SOAP12, h, "", body), h.MessageID, nil
}

// RequestBytes returns the size of a request's envelope as it is sent. Sizes of compressed envelopes differ by a few bytes, as each has another
// MessageID.
func RequestBytes(to string, r request.Request, receipt bool, encoding string) (int, error) {
	envelope, _, err := newRequest(scheme+to+r.Path, r, receipt)
	if err != nil {
		return 0, err
	}
	whole, err := encode(encoding, envelope)
	return len(whole), err
}

// parse reads an envelope in an encoding. The error is the *soap.Fault to answer with.
func parse(name string, data []byte) (*soap.Message, error) {
	envelope, err := decode(name, data)
	if err != nil {
		return nil, &soap.Fault{Code: soap.Sender, Reason: err.Error()}
	}
	return soap.ParseMessage(envelope, opaque...)
}

// reply is the answer to a request.
type reply struct {
	// envelope as text; nil if the sender wants none.
	envelope []byte
	version  soap.Version
	action   string
	fault    *soap.Fault
}

// answer has the handler answer a message, or a fault if it could not be read. The path is that of the transport, if it has one.
func answer(handler request.Handler, at time.Time, path string, m *soap.Message, err error) reply {
	if fault, ok := errors.AsType[*soap.Fault](err); ok {
		return faultReply(m, fault)
	}
	if m.Fault != nil {
		return faultReply(m, &soap.Fault{Code: soap.Sender, Reason: "a fault is no request"})
	}
	silent := m.ReplyTo == soap.None
	if m.ReplyTo != "" && m.ReplyTo != soap.Anonymous && !silent {
		return faultReply(m, &soap.Fault{Code: soap.Sender, Reason: fmt.Sprintf("reply to %q: want the anonymous address or none", safetext.Truncate(m.ReplyTo))})
	}
	got, err := contentOf(m)
	if err != nil {
		return faultReply(m, &soap.Fault{Code: soap.Sender, Reason: err.Error()})
	}
	if path == "" {
		path = pathOf(m.To.Address)
	}
	response := handler(at, request.Request{Path: path, Body: got.body, ContentType: got.kind, ContentEncoding: got.encoding})
	if silent {
		return reply{}
	}
	if response.Status >= 300 {
		return faultReply(m, faultOf(response))
	}
	body, err := content{response.Body, response.ContentType, response.ContentEncoding}.element()
	if err != nil {
		return faultReply(m, &soap.Fault{Code: soap.Receiver, Reason: err.Error()})
	}
	h := soap.Header{MessageID: soap.NewMessageID(), RelatesTo: m.MessageID}
	switch {
	case m.Action != "":
		h.Action = soap.ResponseAction(m.Action)
	case m.MessageID != "": // it wants a reply that relates to it, which only a header with an action has
		h.Action = soap.ResponseAction(actionRequest)
	}
	return reply{envelope: soap.Envelope(m.SOAP, h, "", body), version: m.SOAP, action: h.Action}
}

// pathOf returns the path of an address such as soap.udp://hq:5000/messages.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(u.RequestURI(), "/") {
		return "/"
	}
	return u.RequestURI()
}

// faultReply answers with a fault. Of the message only the header may be known, or nothing.
func faultReply(m *soap.Message, fault *soap.Fault) reply {
	if m == nil {
		m = &soap.Message{SOAP: soap.SOAP12}
	}
	if m.ReplyTo == soap.None {
		return reply{fault: fault}
	}
	h := soap.Header{Action: soap.ActionFault, MessageID: soap.NewMessageID(), RelatesTo: m.MessageID}
	return reply{envelope: soap.FaultEnvelope(m.SOAP, h, "", fault, ""), version: m.SOAP, action: h.Action, fault: fault}
}

// faultOf tells the service's refusal.
func faultOf(response request.Response) *soap.Fault {
	fault := &soap.Fault{Code: soap.Receiver, Reason: fmt.Sprintf("%d %s", response.Status, http.StatusText(response.Status))}
	if response.Status < 500 {
		fault.Code = soap.Sender
	}
	if strings.HasPrefix(response.ContentType, "text/plain") && response.ContentEncoding == "" && soap.IsXMLText(string(response.Body)) {
		fault.Reason = safetext.Truncate(string(response.Body))
	}
	return fault
}

// statusOf is that of HTTP for a fault (SOAP 1.2 Part 2, table 20; SOAP 1.1, 6.2).
func statusOf(version soap.Version, code soap.FaultCode) int {
	if version == soap.SOAP12 && code == soap.Sender {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// responseOf returns what a reply to the message of an id says. The failure is nil if it is a receipt.
func responseOf(m *soap.Message, err error, id string) (request.Response, *request.Failure) {
	switch {
	case err != nil:
		return request.Response{}, request.Failed(request.Invalid, "the reply is no SOAP envelope: "+safetext.Truncate(err.Error()))
	case m.RelatesTo != "" && m.RelatesTo != id:
		return request.Response{}, request.Failed(request.Invalid, "the reply relates to another message")
	case m.Fault != nil:
		return request.Response{Status: statusOf(soap.SOAP12, m.Fault.Code)}, request.Failed(request.Rejected, safetext.Truncate(safetext.Terminal(m.Fault.Reason)))
	}
	got, err := contentOf(m)
	if err != nil {
		return request.Response{}, request.Failed(request.Invalid, "the reply's content: "+err.Error())
	}
	response := request.Response{Status: http.StatusOK, Body: got.body, ContentType: got.kind, ContentEncoding: got.encoding}
	if len(got.body) == 0 {
		response.Status = http.StatusNoContent
	}
	return response, nil
}
