package trafficconfig

import "testing"

func TestAWrongAdaptationOrRepetitionIsToldInWords(t *testing.T) {
	base := Publish{Topic: "a/b", PeriodSeconds: 0.5, Payload: "gps"}
	for want, change := range map[string]func(*Publish){
		"publish.adaptRate has lowFrames 8, highFrames 2 and maxPeriodSeconds 32 s: want lowFrames below highFrames, and maxPeriodSeconds above 0, up to 1000000 s": func(p *Publish) {
			p.AdaptRate = &AdaptRate{HighFrames: 2, LowFrames: 8, MaxPeriodSeconds: 32}
		},
		"publish.repeat is 2 times, one every 90 s: want times from 1 and intervalSeconds from 0.001 to 60 s":                                                 func(p *Publish) { p.Repeat = &Repeat{Times: 2, IntervalSeconds: 90} },
		"publish.repeat is 2000 times, one every 60 s, with periodSeconds 0.5 s: want a period, and at most 1024 messages in the time of a message's repeats": func(p *Publish) { p.Repeat = &Repeat{Times: 2000, IntervalSeconds: 60} },
	} {
		p := base
		change(&p)
		err := Config{Instance: "a/b", Protocol: "mqtt-udp", Broadcast: "198.18.0.255:1883", Entity: "A", Publish: &p}.Validate()
		if err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestOnlyInstancesThatAskNobodyForAConnectionAreConnectionless(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   bool
	}{
		"broadcast":                  {Config{Protocol: "mqtt-udp", Publish: &Publish{}}, true},
		"multicast":                  {Config{Protocol: "zeromq", Transport: "pgm", Subscribe: &Subscribe{}}, true},
		"raw multicast":              {Config{Protocol: "zeromq", Transport: "pgm-raw", Publish: &Publish{}}, true},
		"TCP":                        {Config{Protocol: "zeromq", Transport: "tcp", Publish: &Publish{}}, false},
		"QoS -1":                     {Config{Protocol: "mqtt-sn", Publish: &Publish{QoS: -1}}, true},
		"QoS -1 and a subscription":  {Config{Protocol: "mqtt-sn", Publish: &Publish{QoS: -1}, Subscribe: &Subscribe{}}, false},
		"QoS 0":                      {Config{Protocol: "mqtt-sn", Publish: &Publish{}}, false},
		"a subscription at a broker": {Config{Protocol: "mqtt", Subscribe: &Subscribe{}}, false},
	} {
		if got := c.config.Connectionless(); got != c.want {
			t.Errorf("%s: connectionless is %t; want %t", name, got, c.want)
		}
	}
}
