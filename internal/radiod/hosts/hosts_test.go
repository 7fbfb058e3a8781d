package hosts

import (
	"encoding/base64"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestOtherHostsEntriesAreChecked(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(make([]byte, peers.KeyLength))
	for name, c := range map[string]struct {
		peer v1alpha1.RadioPeer
		want string
	}{
		"good":       {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: good}, ""},
		"no port":    {v1alpha1.RadioPeer{Address: "192.0.2.7", Key: good}, "peer.address"},
		"a name":     {v1alpha1.RadioPeer{Address: "host:9601", Key: good}, "peer.address"},
		"short key":  {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: good[:20]}, "peer.key"},
		"not base64": {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: "§"}, "peer.key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsePeer(&c.peer)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
		})
	}
}
