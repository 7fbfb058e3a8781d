package plugin

import (
	"testing"

	"vignette.dev/vignette/internal/radiod/wire"
)

func TestParseConfigFillsInTheSocket(t *testing.T) {
	for name, c := range map[string]struct{ stdin, socket string }{
		"default": {`{"cniVersion":"1.0.0","name":"n","type":"radio","network":"vhf"}`, wire.DefaultSocket},
		"empty":   {`{"socket":""}`, wire.DefaultSocket},
		"given":   {`{"socket":"/elsewhere"}`, "/elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseConfig([]byte(c.stdin)); err != nil || got.Socket != c.socket {
				t.Errorf("got %+v, %v; want socket %s", got, err, c.socket)
			}
		})
	}
	if _, err := ParseConfig([]byte(`{`)); err == nil {
		t.Error("half a configuration was taken")
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"cniVersion":"1.1.0","name":"n","type":"radio","network":"vhf","cni.dev/valid-attachments":[{"containerID":"c","ifname":"vhf"}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, stdin []byte) {
		if c, err := ParseConfig(stdin); err == nil && c.Socket == "" {
			t.Errorf("ParseConfig(%q) gives no socket", stdin)
		}
	})
}
