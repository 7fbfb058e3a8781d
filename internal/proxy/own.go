package proxy

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"vignette.dev/vignette/internal/proxy/frame"
	"vignette.dev/vignette/internal/proxy/message"
)

// Names of the proxies in the field Proxy-Status.
const (
	nearName = "vignette-near"
	farName  = "vignette-far"
)

// Errors of RFC 9209, section 2.3.
const (
	errorInternal        = "proxy_internal_error"
	errorRequest         = "http_request_error"
	errorLoop            = "proxy_loop_detected"
	errorLimit           = "connection_limit_reached"
	errorLink            = "connection_timeout"
	errorName            = "dns_error"
	errorRefused         = "connection_refused"
	errorUnroutable      = "destination_ip_unroutable"
	errorUnavailable     = "destination_unavailable"
	errorTerminated      = "connection_terminated"
	errorResponse        = "http_protocol_error"
	errorResponseTimeout = "http_response_timeout"
	errorResponseSize    = "http_response_body_size"
)

// refusal is a response that a proxy makes itself: a status, an error of RFC 9209, and a sentence for people.
type refusal struct {
	status int
	kind   string
	text   string
}

func (r *refusal) Error() string { return r.text }

// message returns the refusal as an HTTP response of a proxy: the reason is in the body, and in the field Proxy-Status (RFC 9209).
func (r *refusal) message(proxy string) (h message.Head, body string) {
	body = r.text + "\n"
	return message.Head{Start: fmt.Sprintf("HTTP/1.1 %d %s", r.status, http.StatusText(r.status)), Fields: []string{
		"Content-Type: text/plain; charset=utf-8",
		fmt.Sprintf("Content-Length: %d", len(body)),
		fmt.Sprintf("Proxy-Status: %s; error=%s; details=%s", proxy, r.kind, structured(r.text)),
	}}, body
}

// content returns the refusal as content of a frame.
func (r *refusal) content(proxy string) []byte {
	h, body := r.message(proxy)
	var out bytes.Buffer
	_, _ = frame.WriteContent(&out, h, strings.NewReader(body), func() []string { return nil }) // memory does not fail
	return out.Bytes()
}

// structured returns a text as a string of structured fields (RFC 9651, 3.3.3), which has ASCII characters only.
func structured(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteRune(c)
		case c < ' ' || c > '~':
			out.WriteByte('?')
		default:
			out.WriteRune(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
