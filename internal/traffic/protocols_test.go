package traffic

import (
	"testing"

	"vignette.dev/vignette/internal/trafficconfig"
)

func TestEveryProtocolHasAClient(t *testing.T) {
	for name := range Protocols {
		if trafficconfig.ProtocolOf(name).Name == "" {
			t.Errorf("protocol %s has a client and no line in trafficconfig.Protocols", name)
		}
	}
	for _, p := range trafficconfig.Protocols {
		if Protocols[p.Name] == nil && !p.CLibrary {
			t.Errorf("protocol %s has no client in Protocols", p.Name)
		}
	}
}
