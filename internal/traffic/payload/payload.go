// Package payload makes the content of messages, and reads their ids.
package payload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/payload/bytes"
	"vignette.dev/vignette/internal/traffic/payload/file"
	"vignette.dev/vignette/internal/traffic/payload/geojson"
	"vignette.dev/vignette/internal/traffic/payload/gps"
	"vignette.dev/vignette/internal/traffic/payload/image"
	"vignette.dev/vignette/internal/traffic/payload/nffi"
	"vignette.dev/vignette/internal/traffic/payload/track"
)

// Maker makes the content of a sender's messages, one after the other.
type Maker interface {
	// Append appends the content of the message with the given id, made at the given time, to dst.
	Append(dst []byte, id string, at time.Time) []byte
}

// Sender is the unit that messages describe.
type Sender struct {
	Country, Unit, Entity string
	// Track of the unit; nil for one at random.
	Track track.Track
}

// follower is a Maker of messages that report a position.
type follower interface{ Follow(track.Track) }

// kind is a kind of payload. Its content comes from what is given: nothing after its word, a number, or a path.
type kind struct {
	word     string
	plain    func(s Sender, seed int64) Maker
	ofNumber func(s Sender, n int, seed int64) (Maker, error)
	ofPath   func(path string) (Maker, error)
	// reportsPosition: its Maker is a follower.
	reportsPosition bool
	// mediaType and parse are for messages of no message model, which package encoding knows.
	mediaType string
	parse     func(content []byte) (id string, made time.Time, ok bool)
}

// kinds in the order in which they are tried to read a message.
var kinds = []kind{
	{word: "geojson", reportsPosition: true, plain: func(s Sender, seed int64) Maker { return geojson.New(s.Country, s.Unit, s.Entity, seed) }},
	{word: "geojson-ids", reportsPosition: true, plain: func(s Sender, seed int64) Maker { return geojson.NewIDs(s.Country, s.Unit, s.Entity, seed) }},
	{word: "nffi", reportsPosition: true, mediaType: "application/xml", plain: func(s Sender, seed int64) Maker { return nffi.New(s.Country, s.Unit, s.Entity, seed) },
		ofNumber: func(s Sender, n int, seed int64) (Maker, error) {
			return nffi.NewTracks(s.Country, s.Unit, s.Entity, seed, n)
		}},
	{word: "nffi-long", reportsPosition: true, plain: func(s Sender, seed int64) Maker { return nffi.NewLong(s.Country, s.Unit, s.Entity, seed) }},
	{word: "gps", reportsPosition: true, mediaType: "text/plain", plain: func(_ Sender, seed int64) Maker { return gps.New(seed) }, parse: gps.Parse},
	{word: "image", mediaType: "image/png", ofNumber: func(_ Sender, n int, seed int64) (Maker, error) { return image.New(n, seed) }, parse: image.Parse},
	{word: "bytes", ofNumber: func(s Sender, n int, seed int64) (Maker, error) { return bytes.New(s.Entity, n, seed) }, parse: bytes.Parse},
	{word: "file", ofPath: func(path string) (Maker, error) { return file.New(path) }},
}

// kindOf is the kind of a payload such as bytes:100, empty for none, and what follows the colon.
func kindOf(payload string) (k kind, argument string) {
	word, argument, _ := strings.Cut(payload, ":")
	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.word == word }); i >= 0 {
		k = kinds[i]
	}
	return k, argument
}

// ReportsPosition reports whether messages of a kind report a position. OnNode makes it that of the node's platform.
func ReportsPosition(kind string) bool {
	k, _ := kindOf(kind)
	return k.reportsPosition
}

// MediaType is that of a payload that is of no message model.
func MediaType(kind string) string {
	k, _ := kindOf(kind)
	return cmp.Or(k.mediaType, "application/octet-stream")
}

// OnNode returns the sender with the track of this node's platform, if messages of a kind report it; else as it was, and nil.
func (s Sender) OnNode(kind string) (Sender, *track.Platform, error) {
	if !ReportsPosition(kind) {
		return s, nil, nil
	}
	platform, err := track.OfNode()
	if platform != nil { // a nil one in the interface would count as a track
		s.Track = platform
	}
	return s, platform, err
}

// New returns a Maker of a kind: geojson, geojson-ids, nffi, nffi-long, nffi:N, gps, image:N, bytes:N or file:PATH. The same seed
// gives the same content.
func New(kind string, s Sender, seed int64) (Maker, error) {
	m, err := newMaker(kind, s, seed)
	if err == nil && s.Track != nil && ReportsPosition(kind) {
		m.(follower).Follow(s.Track)
	}
	return m, err
}

func newMaker(kind string, s Sender, seed int64) (Maker, error) {
	k, argument := kindOf(kind)
	switch {
	case k.plain != nil && kind == k.word:
		return k.plain(s, seed), nil
	case k.ofPath != nil && argument != "":
		return k.ofPath(argument)
	case k.ofNumber != nil:
		n, err := strconv.Atoi(argument)
		if err != nil {
			return nil, fmt.Errorf("payload %q: want %s:N with a number N", kind, k.word)
		}
		return k.ofNumber(s, n, seed)
	}
	return nil, fmt.Errorf("payload %q: %w", kind, ErrKind)
}

// ErrKind is the error of New about a kind that there is not.
var ErrKind = errors.New("want geojson, geojson-ids, nffi, nffi-long, nffi:N, gps, image:N, bytes:N or file:PATH")

// NewEncoded returns a Maker of geojson or nffi in an encoding and a compression. An empty encoding is the kind's own.
func NewEncoded(kind, encodingName, compression string, s Sender, seed int64) (Maker, error) {
	if kind != encoding.GeoJSON && kind != encoding.NFFI {
		return nil, fmt.Errorf("payload %q: only geojson and nffi have encodings", kind)
	}
	if encodingName == "" {
		encodingName = encoding.Encodings(kind)[0]
	}
	codec, err := encoding.New(kind, encodingName, compression)
	if err != nil {
		return nil, err
	}
	plain, err := New(kind, s, seed)
	if err != nil {
		return nil, err
	}
	return &encodedMaker{plain: plain, codec: codec}, nil
}

// encodedMaker encodes what another Maker makes.
type encodedMaker struct {
	plain   Maker
	codec   *encoding.Codec
	content []byte
}

// Append encodes without an error, as what a Maker makes is always a message of its model.
func (m *encodedMaker) Append(dst []byte, id string, at time.Time) []byte {
	m.content = m.plain.Append(m.content[:0], id, at)
	dst, err := m.codec.AppendPlain(dst, m.content)
	if err != nil {
		panic(fmt.Sprintf("payload: message %s: %v", id, err))
	}
	return dst
}

// Unknown is the prefix of ids for messages without one.
const Unknown = "unknown:"

// Parse returns a message's id and the time it was made (zero if absent). A message of a
// foreign publisher without an id gets one from its content.
func Parse(content []byte) (id string, made time.Time) {
	if id, made, ok := encoding.Identify(content); ok {
		return id, made
	}
	for _, k := range kinds {
		if k.parse == nil {
			continue
		}
		if id, made, ok := k.parse(content); ok {
			return id, made
		}
	}
	hash := sha256.Sum256(content)
	return Unknown + hex.EncodeToString(hash[:8]), time.Time{}
}
