package guestconfig

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func good() Config {
	agent := agentconfig.Config{Server: "http://server", RunUID: "uid", Node: "veh-1", App: "bft", StopGraceSeconds: 3,
		Instances: []agentconfig.Instance{{Name: "veh-1/bft", Command: []string{"/traffic", "--config", "/vignette/run/1.json"}}}}
	return Config{
		Node: "veh-1", Server: "http://server", RunUID: "uid",
		Interfaces: []Interface{
			{Name: "vhf", MAC: "02:02:00:00:00:01", Address: "198.18.9.1/24", MTU: 1500, Primary: true, Routing: &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2}, Seed: 7},
			{Name: "uhf", MAC: "02:02:00:00:01:01", Address: "198.18.10.1/24", MTU: 1400, Routes: []v1alpha1.MemberRoute{{To: "198.18.11.0/24", Via: "198.18.10.2"}}},
		},
		Hosts: []Host{{Address: "198.18.9.1", Names: []string{"veh-1"}}, {Address: "198.18.9.2", Names: []string{"veh-2", "hq"}}},
		Apps: []App{{Agent: agent, Tools: ToolsTraffic, Env: map[string]string{"A": "b=c"}, RunAsUser: ptr.To(int64(1000)),
			Files:       []File{{Path: "/etc/bft/config", Content: []byte{0, 255, '\n'}}},
			SecretEnv:   map[string]SecretKey{"KEY": {Disk: SecretLabel(1), Secret: "keys", Key: "bft.token"}},
			SecretFiles: []SecretFile{{Path: "/vignette/security/ca.crt", SecretKey: SecretKey{Disk: SecretLabel(0), Key: "ca.crt"}}}}},
		SSHKeys: []string{"ssh-ed25519 AAAA somebody"},
	}
}

func TestAConfigurationComesBackAsItWasWritten(t *testing.T) {
	text, err := Encode(good())
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text)
	if err != nil || !reflect.DeepEqual(good(), back) {
		t.Errorf("%+v came back as %+v, %v", good(), back, err)
	}
}

func TestWhatIsWrongWithAConfigurationIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"nothing":                   {func(*Config) {}, ""},
		"node in capitals":          {func(c *Config) { c.Node = "HQ" }, `node is "HQ"`},
		"no server":                 {func(c *Config) { c.Server = "" }, "server is"},
		"no run":                    {func(c *Config) { c.RunUID = "" }, "runUID is"},
		"long interface":            {func(c *Config) { c.Interfaces[1].Name = "sixteen-letters-" }, `interfaces[1].name is "sixteen-letters-"`},
		"the loopback":              {func(c *Config) { c.Interfaces[0].Name = "lo" }, "interfaces[0].name"},
		"bad MAC":                   {func(c *Config) { c.Interfaces[0].MAC = "02:02" }, `interfaces[0].mac is "02:02"`},
		"one MAC twice":             {func(c *Config) { c.Interfaces[1].MAC = c.Interfaces[0].MAC }, "every MAC address once"},
		"address without prefix":    {func(c *Config) { c.Interfaces[0].Address = "198.18.9.1" }, "interfaces[0].address"},
		"IPv6 address":              {func(c *Config) { c.Interfaces[0].Address = "2001:db8::1/64" }, "want an IPv4 address"},
		"tiny MTU":                  {func(c *Config) { c.Interfaces[0].MTU = 67 }, "interfaces[0].mtu is \"67\""},
		"two primary":               {func(c *Config) { c.Interfaces[1].Primary = true }, "2 primary"},
		"route to nowhere":          {func(c *Config) { c.Interfaces[1].Routes[0].To = "hq" }, "interfaces[1].routes[0].to"},
		"route via nobody":          {func(c *Config) { c.Interfaces[1].Routes[0].Via = "hq" }, "interfaces[1].routes[0].via"},
		"host without address":      {func(c *Config) { c.Hosts[0].Address = "veh" }, "hosts[0].address"},
		"host of two lines":         {func(c *Config) { c.Hosts[1].Names[1] = "a\n1.2.3.4 b" }, "hosts[1].names"},
		"one app twice":             {func(c *Config) { c.Apps = append(c.Apps, c.Apps[0]) }, "each app once"},
		"app that is a path":        {func(c *Config) { c.Apps[0].Agent.App = "../x" }, "apps[0].agent.app"},
		"app of another node":       {func(c *Config) { c.Apps[0].Agent.Node = "hq" }, "node of the guest itself"},
		"app with a wrong agent":    {func(c *Config) { c.Apps[0].Agent.StopGraceSeconds = -1 }, "apps[0]: agent configuration"},
		"unknown tools":             {func(c *Config) { c.Apps[0].Tools = "vernemq" }, `apps[0].tools is "vernemq"`},
		"app of root":               {func(c *Config) { c.Apps[0].RunAsUser = ptr.To(int64(0)) }, "apps[0].runAsUser"},
		"raw sockets for an app":    {func(c *Config) { c.Apps[0].Tools, c.Apps[0].RawSockets = ToolsTraffic, true }, `apps[0].rawSockets is "true"`},
		"raw sockets for ZeroMQ":    {func(c *Config) { c.Apps[0].Tools, c.Apps[0].RawSockets = ToolsZeroMQ, true }, ""},
		"variable with = in name":   {func(c *Config) { c.Apps[0].Env = map[string]string{"A=": ""} }, "apps[0].env"},
		"variable that is binary":   {func(c *Config) { c.Apps[0].Env = map[string]string{"A": "\xff"} }, "apps[0].env"},
		"variable given twice":      {func(c *Config) { c.Apps[0].Env = map[string]string{"KEY": ""} }, `apps[0].secretEnv is "KEY"`},
		"variable of another disk":  {func(c *Config) { c.Apps[0].SecretEnv = map[string]SecretKey{"K": {Disk: "vgtools", Key: "k"}} }, `apps[0].secretEnv.K.disk is "vgtools"`},
		"variable of a key outside": {func(c *Config) { c.Apps[0].SecretEnv = map[string]SecretKey{"K": {Disk: "vgsecret0", Key: "../k"}} }, `apps[0].secretEnv.K.key is "../k"`},
		"relative secret file":      {func(c *Config) { c.Apps[0].SecretFiles[0].Path = "ca.crt" }, `apps[0].secretFiles[0].path is "ca.crt"`},
		"secret file without a key": {func(c *Config) { c.Apps[0].SecretFiles[0].Key = "" }, `apps[0].secretFiles[0].key is ""`},
		"relative file":             {func(c *Config) { c.Apps[0].Files[0].Path = "etc/x" }, "apps[0].files[0].path"},
		"file that leaves":          {func(c *Config) { c.Apps[0].Files[0].Path = "/etc/../x" }, "apps[0].files[0].path"},
		"key of two lines":          {func(c *Config) { c.SSHKeys[0] += "\nssh-rsa A" }, "sshKeys[0]"},
		"more than a Secret's room": {func(c *Config) { c.Apps[0].Files[0].Content = make([]byte, MaxBytes) }, "want at most 1008 KiB"},
		"more than a variable's room": {func(c *Config) {
			c.Apps[0].Agent.Files = []agentconfig.File{{Path: "/vignette/run/1", Content: strings.Repeat("x", maxVariable)}}
		}, "apps[0].agent is"},
	} {
		t.Run(name, func(t *testing.T) {
			config := good()
			c.change(&config)
			_, err := Encode(config)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	text, err := Encode(good())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"node":"n","server":"s","runUID":"u","interfaces":[{"name":"a","mac":"0:0:0:0:0:0","address":"1.2.3.4/33","mtu":1}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		first, err := Encode(c)
		if err != nil {
			if len(text) < MaxBytes/8 { // JSON may grow when it is written again
				t.Fatalf("%s was read and cannot be written: %v", text, err)
			}
			return
		}
		again, err := Parse(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := Encode(again); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s came back as %s, %v", first, second, err)
		}
	})
}
