package transport

import "testing"

func TestRoutingKeysAreThoseOfRabbitMQ(t *testing.T) {
	for topic, key := range map[string]string{
		"/PRT/PRT-UNIT001/PRT-S003/location": ".PRT.PRT-UNIT001.PRT-S003.location",
		"a//b":                               "a..b",
		"a/":                                 "a.",
		"#":                                  "#",
		"+/b/#":                              "*.b.#",
		"v1.2/x*":                            "v1/2.x+",
		"é/ß x":                              "é.ß x",
	} {
		if got := RoutingKey(topic); got != key {
			t.Errorf("topic %s has key %s; want %s", topic, got, key)
		}
		if got := Topic(key); got != topic {
			t.Errorf("key %s has topic %s; want %s", key, got, topic)
		}
	}
}

func FuzzRoutingKeysComeBackAsTheirTopics(f *testing.F) {
	f.Add("/PRT/x.y", "/PRT/x/y")
	f.Fuzz(func(t *testing.T, a, b string) {
		if Topic(RoutingKey(a)) != a {
			t.Errorf("%q came back as %q", a, Topic(RoutingKey(a)))
		}
		if a != b && RoutingKey(a) == RoutingKey(b) {
			t.Errorf("%q and %q have one key", a, b)
		}
	})
}
