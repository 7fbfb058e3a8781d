package client

import (
	"mime"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"

	"vignette.dev/vignette/internal/traffic/request"
)

// formats are the Content-Formats of media types: those registered by IANA, and from 65000 on numbers for experiments.
var formats = map[string]uint16{
	"text/plain":               0,
	"application/link-format":  40,
	"application/xml":          41,
	"application/octet-stream": 42,
	"application/exi":          47,
	"application/json":         50,
	"application/cbor":         60,
	"application/geo+json":     65100,
	"application/soap+xml":     65101,
}

// aliases are other names of media types.
var aliases = map[string]string{"text/xml": "application/xml"}

const (
	// firstGzip is added to a Content-Format below 100 for content compressed by gzip, which IANA has no numbers for.
	firstGzip = 65000
	// gzipOfExperimental is added to an experimental Content-Format.
	gzipOfExperimental = 100
)

// deflated are IANA's Content-Formats for compressed content.
var deflated = map[uint16]string{11050: "application/json", 11060: "application/cbor"}

type content struct{ mediaType, encoding string }

var contents = func() map[uint16]content {
	all := map[uint16]content{}
	for mediaType := range formats {
		for _, encoding := range []string{"", "gzip"} {
			number, _ := ContentFormat(mediaType, encoding)
			all[number] = content{mediaType, encoding}
		}
	}
	for number, mediaType := range deflated {
		all[number] = content{mediaType, "deflate"}
	}
	return all
}()

// ContentFormat is the Content-Format of a media type in a content encoding, which is empty, gzip or deflate. It reports whether there is one.
func ContentFormat(mediaType, encoding string) (uint16, bool) {
	if plain, _, err := mime.ParseMediaType(mediaType); err == nil {
		mediaType = plain
	}
	if name, ok := aliases[mediaType]; ok {
		mediaType = name
	}
	number, ok := formats[mediaType]
	switch {
	case !ok:
		return 0, false
	case encoding == "":
		return number, true
	case encoding == "gzip" && number < firstGzip:
		return firstGzip + number, true
	case encoding == "gzip":
		return number + gzipOfExperimental, true
	}
	for deflate, name := range deflated {
		if encoding == "deflate" && name == mediaType {
			return deflate, true
		}
	}
	return 0, false
}

// addFormat adds the Content-Format; without a media type there is none. It reports whether the type has one.
func addFormat(m *message.Message, mediaType, encoding string) bool {
	if mediaType == "" && encoding == "" {
		return true
	}
	number, ok := ContentFormat(mediaType, encoding)
	if ok {
		addUint(m, message.ContentFormat, uint32(number))
	}
	return ok
}

// formatOf reports whether a message's Content-Format is known, or there is none.
func formatOf(m message.Message) (content, bool) {
	number, ok := uintOption(m, message.ContentFormat)
	if !ok {
		return content{}, true
	}
	c, ok := contents[uint16(number)]
	return c, ok
}

// statusOf is HTTP's status for a response code, after RFC 8075.
func statusOf(c codes.Code) int {
	switch c {
	case codes.Content:
		return 200
	case codes.Deleted:
		return 204
	case codes.Valid:
		return 304
	}
	return class(c)*100 + int(c&31)
}

// codeOf is the response code for HTTP's status of a response to a method. Without a status it is success.
func codeOf(status int, method codes.Code) codes.Code {
	switch {
	case status == 201:
		return codes.Created
	case (status == 0 || status >= 200 && status < 300) && method == codes.GET:
		return codes.Content
	case status == 0 || status >= 200 && status < 300:
		return codes.Changed
	case status == 304:
		return codes.Valid
	case status >= 400 && status < 600 && status%100 < 32:
		return codes.Code(status/100<<5 | status%100)
	case status >= 400 && status < 500:
		return codes.BadRequest
	}
	return codes.InternalServerError
}

// responseOf is a response as the traffic program sees it.
func responseOf(m message.Message) request.Response {
	c, _ := formatOf(m)
	return request.Response{Status: statusOf(m.Code), Body: m.Payload, ContentType: c.mediaType, ContentEncoding: c.encoding}
}
