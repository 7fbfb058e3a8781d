// Package payload makes the content of messages, and reads their ids.
package payload

import (
	"crypto/sha256"
	"encoding/hex"
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

// ReportsPosition reports whether messages of a kind report a position. OnNode makes it that of the node's platform.
func ReportsPosition(kind string) bool {
	word, _, _ := strings.Cut(kind, ":")
	return slices.Contains([]string{"geojson", "geojson-ids", "nffi", "nffi-long", "gps"}, word)
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
	word, argument, _ := strings.Cut(kind, ":")
	switch {
	case kind == "geojson":
		return geojson.New(s.Country, s.Unit, s.Entity, seed), nil
	case kind == "geojson-ids":
		return geojson.NewIDs(s.Country, s.Unit, s.Entity, seed), nil
	case kind == "nffi":
		return nffi.New(s.Country, s.Unit, s.Entity, seed), nil
	case kind == "nffi-long":
		return nffi.NewLong(s.Country, s.Unit, s.Entity, seed), nil
	case kind == "gps":
		return gps.New(seed), nil
	case word == "file" && argument != "":
		return file.New(argument)
	case word == "bytes", word == "image", word == "nffi":
		n, err := strconv.Atoi(argument)
		if err != nil {
			return nil, fmt.Errorf("payload %q: want %s:N with a number N", kind, word)
		}
		if word == "nffi" {
			return nffi.NewTracks(s.Country, s.Unit, s.Entity, seed, n)
		}
		if word == "image" {
			return image.New(n, seed)
		}
		return bytes.New(s.Entity, n, seed)
	}
	return nil, fmt.Errorf("payload %q: want geojson, geojson-ids, nffi, nffi-long, nffi:N, gps, image:N, bytes:N or file:PATH", kind)
}

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
	for _, parse := range []func([]byte) (string, time.Time, bool){encoding.Identify, gps.Parse, image.Parse, bytes.Parse} {
		if id, made, ok := parse(content); ok {
			return id, made
		}
	}
	hash := sha256.Sum256(content)
	return Unknown + hex.EncodeToString(hash[:8]), time.Time{}
}
