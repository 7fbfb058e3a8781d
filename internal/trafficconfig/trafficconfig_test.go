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
