package mqttsn

import "testing"

func TestShortNamesAreTopicsOfTwoCharacters(t *testing.T) {
	for topic, want := range map[string]bool{"ab": true, "/a": true, "é": true, "a": false, "abc": false, "": false, "a#": false, "+/": false, "#": false} {
		id, ok := ShortName(topic)
		if ok != want || ok && LongName(id) != topic {
			t.Errorf("%q: %v %04x", topic, ok, id)
		}
	}
}
