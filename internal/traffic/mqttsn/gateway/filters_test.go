package gateway

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
)

// allTopics are the topics of up to three levels.
func allTopics(levels ...string) (topics []string) {
	for _, one := range levels {
		topics = append(topics, one)
		for _, two := range levels {
			topics = append(topics, one+"/"+two)
			for _, three := range levels {
				topics = append(topics, one+"/"+two+"/"+three)
			}
		}
	}
	return topics
}

func TestDisjointFiltersMatchWhatTheGivenOnesDoAndNothingTwice(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	topics, words := allTopics("a", "b", "", "$c"), []string{"a", "b", "", "$c", "+"}
	for range 2000 {
		filters := map[string]int{}
		for range 1 + random.IntN(4) {
			var levels []string
			for range 1 + random.IntN(3) {
				levels = append(levels, words[random.IntN(len(words))])
			}
			if random.IntN(3) == 0 {
				levels[len(levels)-1] = "#"
			}
			if filter := strings.Join(levels, "/"); filter != "" {
				filters[filter] = random.IntN(3)
			}
		}
		result := disjoint(filters)
		for _, topic := range topics {
			qos := -1
			for filter, q := range filters {
				if topic != "" && mqtttopic.Match(filter, topic) {
					qos = max(qos, q)
				}
			}
			matching, got := 0, -1
			for filter, q := range result {
				if topic != "" && mqtttopic.Match(filter, topic) {
					matching, got = matching+1, q
				}
			}
			if matching > 1 || got < qos {
				t.Fatalf("%v become %v, of which %d match %s with QoS %d; want one with %d", filters, result, matching, topic, got, qos)
			}
		}
	}
}

func TestFiltersBecomeNoWiderThanNeeded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ given, want map[string]int }{
		{map[string]int{"a": 0, "b/+": 1, "c/#": 2, "$SYS/#": 0}, map[string]int{"a": 0, "b/+": 1, "c/#": 2, "$SYS/#": 0}},
		{map[string]int{"#": 0, "/NOR/#": 2, "$SYS/#": 0}, map[string]int{"#": 2, "$SYS/#": 0}},
		{map[string]int{"a/+/x": 1, "a/b/+": 0, "a/b": 0}, map[string]int{"a/+/+": 1, "a/b": 0}},
		{map[string]int{"a": 1, "a/#": 0}, map[string]int{"a/#": 1}},
		{map[string]int{"a/+": 0, "+/b": 0, "c/d": 2}, map[string]int{"+/+": 2}},
	} {
		if got := disjoint(c.given); !maps.Equal(got, c.want) {
			t.Errorf("%v become %v; want %v", c.given, got, c.want)
		}
	}
}
