package plugin

import (
	"encoding/json"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"

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

func FuzzRequestAndResult(f *testing.F) {
	f.Add([]byte(`{"cniVersion":"1.1.0","name":"n","type":"radio","network":"vhf"}`), "IgnoreUnknown=true;K8S_POD_UID=u;K8S_POD_UID=v", "vhf", "198.18.9.1/24", "02:02:00:00:00:01", 1500)
	f.Add([]byte(`{"cniVersion":"0.3.0","network":5}`), ";;=;K8S_POD_UID=", "", "nonsense", "", -1)
	f.Fuzz(func(t *testing.T, stdin []byte, environment, name, address, mac string, mtu int) {
		c, err := ParseConfig(stdin)
		if err != nil {
			return
		}
		args := &skel.CmdArgs{ContainerID: "c", Netns: "/run/netns/x", IfName: name, Args: environment, StdinData: stdin}
		request, err := requestOf("ADD", c, args)
		if (err == nil) != (request.PodUID != "") {
			t.Errorf("CNI_ARGS %q: pod UID %q and error %v; want one or the other", environment, request.PodUID, err)
		}
		result, err := resultOf(c, args, wire.Answer{MAC: mac, Address: address, MTU: mtu})
		if err != nil {
			return
		}
		if len(result.IPs) != 1 || result.IPs[0].Address.IP == nil {
			t.Errorf("address %q became %+v", address, result.IPs)
		}
		if _, err := json.Marshal(result); err != nil {
			t.Errorf("the result cannot be printed: %v", err)
		}
	})
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
