package mqtttopic

import (
	"strings"
	"testing"
)

func TestTopicFilters(t *testing.T) {
	for _, c := range []struct {
		filter, topic string
		want          bool
	}{
		// MQTT 3.1.1, 4.7.1
		{"sport/tennis/player1/#", "sport/tennis/player1", true}, {"sport/tennis/player1/#", "sport/tennis/player1/ranking", true},
		{"sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true}, {"sport/#", "sport", true}, {"#", "a/b/c", true},
		{"sport/tennis/+", "sport/tennis/player1", true}, {"sport/tennis/+", "sport/tennis/player1/ranking", false},
		{"sport/+", "sport", false}, {"sport/+", "sport/", true}, {"+/+", "/finance", true}, {"/+", "/finance", true}, {"+", "/finance", false},
		{"#", "$SYS/x", false}, {"+/monitor/Clients", "$SYS/monitor/Clients", false}, {"$SYS/#", "$SYS/", true},
		{"$SYS/monitor/+", "$SYS/monitor/Clients", true}, {"a", "a", true}, {"a", "A", false}, {"a", "a/", false}, {"a/", "a", false},
		// dzavalishin/mqtt_udp, lang/c/test/regress_test.c
		{"aaa/ccc/bbb", "aaa/ccc/bbb", true}, {"aaa/ccc/bbb", "aaa/c/bbb", false}, {"aaa/+/bbb", "aaa/ccc/bbb", true}, {"aaa/+/bbb", "aaa/ccccc/ccc", false},
		{"aaa/#", "aba/ccccc/ccc", false},
		// the experiments'
		{"/PRT/#", "/PRT/PRT-UNIT001/PRT-S003/location", true}, {"/+/+/+/location", "/PRT/PRT-UNIT001/PRT-S003/location", true}, {"/NOR/#", "/PRT/x", false},
	} {
		if got := Match(c.filter, c.topic); got != c.want {
			t.Errorf("filter %q, topic %q: %v; want %v", c.filter, c.topic, got, c.want)
		}
	}
	for _, bad := range []string{"", "a/#/b", "a#", "a/b+", "+a", "a\x00"} {
		if ValidFilter(bad) == nil {
			t.Errorf("filter %q: want an error", bad)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a/+/#", "a/b/c")
	f.Fuzz(func(t *testing.T, filter, topic string) {
		if ValidFilter(filter) != nil || Valid(topic) != nil {
			return
		}
		got := Match(filter, topic)
		if !strings.ContainsAny(filter, "+#") && got != (filter == topic) {
			t.Errorf("filter %q without wildcards, topic %q: %v", filter, topic, got)
		}
		if filter == "#" && got != !strings.HasPrefix(topic, "$") {
			t.Errorf("# and topic %q: %v", topic, got)
		}
	})
}
