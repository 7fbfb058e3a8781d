package radiod

import (
	"strings"
	"testing"
)

func TestFlagsBeyondWhatTheyMayBeAreRefused(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"--peer-port=99999", "--peer-port 99999: want 1 to 65535"},
		{"--peer-port=0", "--peer-port 0: want 1 to 65535"},
		{"--nice=-21", "--nice -21: want -20 to 19"},
		{"--realtime=100", "--realtime 100: want 0 to 99"},
		{"--capture-spool=-1Mi", `--capture-spool "-1Mi": want`},
		{"--peer-port=1", ""}, {"--nice=19", ""}, {"--realtime=99", ""}, {"--capture-spool=0", ""},
	} {
		_, err := ParseOptions([]string{"--host=node-1", "--namespace=vignette", c.flag})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want %q", c.flag, err, c.want)
		}
	}
}
