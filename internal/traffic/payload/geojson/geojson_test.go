package geojson

import (
	"strings"
	"testing"
	"time"
)

func message(id string) string {
	return string(New("PRT", "PRT-UNIT001", "PRT-S003", 7).Append(nil, id, time.UnixMilli(1588759108433)))
}

func TestOwnMessagesAreReadWithoutJSON(t *testing.T) {
	id, at, ok := parseOwn([]byte(message("PRT-S003_28")))
	if !ok || id != "PRT-S003_28" || at.UnixMilli() != 1588759108433 {
		t.Errorf("%q at %v, %v; want what the message says", id, at, ok)
	}
}

func TestWhatDiffersFromOwnMessagesIsLeftToJSON(t *testing.T) {
	own := message("PRT-S003_28")
	for name, text := range map[string]string{
		"an escape in the id":        strings.Replace(own, "S003_28", `S003\u005f28`, 1),
		"a letter beyond ASCII":      message("PRT-Ü_1"),
		"an empty id":                message(""),
		"a number that is none":      strings.Replace(own, `"coordinates": [`, `"coordinates": [0`, 1),
		"a property more":            strings.Replace(own, "}}", `, "more": 1}}`, 1),
		"a time with a fraction":     strings.Replace(own, "8433", "8433.5", 1),
		"a time with a leading zero": strings.Replace(own, ": 1588", ": 01588", 1),
		"another object after it":    own + own,
		"half a message":             own[:len(own)/2],
		"the longer half":            own[:len(own)-1],
	} {
		t.Run(name, func(t *testing.T) {
			if id, _, ok := parseOwn([]byte(text)); ok {
				t.Errorf("read %q from %s", id, text)
			}
		})
	}
}

// FuzzParse holds the fast way against JSON: what it reads must be what Parse would read without it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(message("PRT-S003_28")))
	f.Add([]byte(`{"type": "Feature", "geometry": {"type": "Point", "coordinates": [-1.5, 2, 0]}, "properties": {"country": "", "unit": "", "node_id": "", "msg_id": "a", "timestamp": 9}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		id, at, ok := parseOwn(payload)
		if !ok {
			return
		}
		// A space before it is JSON all the same, and no own message.
		wantID, wantAt, wantOK := Parse(append([]byte(" "), payload...))
		if !wantOK || id != wantID || !at.Equal(wantAt) {
			t.Errorf("%q: %q at %v; JSON says %q at %v, %v", payload, id, at, wantID, wantAt, wantOK)
		}
	})
}
