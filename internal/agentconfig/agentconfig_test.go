package agentconfig

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestWhatIsWrongWithAConfigurationIsNamed(t *testing.T) {
	good := Config{Server: "http://s", RunUID: "u", Node: "n", App: "a", Instances: []Instance{{Name: "n/a", Command: []string{"x"}}}}
	for name, c := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"nothing":                  {func(*Config) {}, ""},
		"no server":                {func(c *Config) { c.Server = "" }, "server is empty"},
		"no node":                  {func(c *Config) { c.Node = "" }, `node ""`},
		"negative grace":           {func(c *Config) { c.StopGraceSeconds = -1 }, "stopGraceSeconds is -1"},
		"endless grace":            {func(c *Config) { c.StopGraceSeconds = 1e12 }, "stopGraceSeconds is 1e+12"},
		"negative spool":           {func(c *Config) { c.SpoolLimitBytes = -1 }, "spoolLimitBytes is -1"},
		"instance without command": {func(c *Config) { c.Instances[0].Command = nil }, "instances[0]"},
		"instance with empty name": {func(c *Config) { c.Instances[0].Name = "" }, "instances[0]"},
		"program without a name":   {func(c *Config) { c.Instances[0].Command = []string{""} }, "instances[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			c2 := good
			c2.Instances = []Instance{good.Instances[0]}
			c.change(&c2)
			err := c2.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

func TestTheEnvironmentVariableIsNamedWhereItIsMissing(t *testing.T) {
	t.Setenv(Env, "")
	if _, err := FromEnv(); err == nil || !strings.Contains(err.Error(), Env) {
		t.Errorf("got %v; want %s in it", err, Env)
	}
}

func FuzzFromEnv(f *testing.F) {
	f.Add(`{"server":"http://s","runUID":"u","node":"n","app":"a","instances":[{"name":"n/a","command":["x"],"platform":3}],"stopGraceSeconds":3}`)
	f.Add(`{"server":"s","runUID":"u","node":"n","app":"a","stopGraceSeconds":1e308}`)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) {
			return // no environment can hold it
		}
		t.Setenv(Env, text)
		c, err := FromEnv()
		if err != nil {
			return
		}
		if c.StopGraceSeconds < 0 || c.SpoolLimitBytes < 0 || c.Server == "" {
			t.Fatalf("accepted %+v", c)
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(Env, string(again))
		if second, err := FromEnv(); err != nil || !reflect.DeepEqual(normal(c), normal(second)) {
			t.Fatalf("%+v came back as %+v, %v", c, second, err)
		}
	})
}

// normal has no difference between empty and absent.
func normal(c Config) string {
	text, _ := json.Marshal(c)
	return string(text)
}
