package messagingconfig

import (
	"slices"
	"strings"
	"testing"
)

// sending is a valid configuration with a message.
func sending() Config {
	c := Config{Instance: "a/chat", Transport: "coap", Port: 5683, TimeoutSeconds: 60, Topic: "messaging/chat/to/a",
		Messages: []Message{{To: "all"}}}
	c.AddDestination("all", []Addressee{{Address: "198.18.0.2:5683", Topic: "to/b"}, {Address: "198.18.0.3:5683", Topic: "to/c"}})
	return c
}

func TestAnAddresseeOfSeveralDestinationsIsThereOnce(t *testing.T) {
	c := sending()
	c.AddDestination("c", []Addressee{{Address: "198.18.0.3:5683", Topic: "to/c"}})
	c.AddDestination("d", []Addressee{{Address: "198.18.0.4:5683", Topic: "to/d"}})
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(c.Addressees) != 3 {
		t.Errorf("%d addressees; want 3", len(c.Addressees))
	}
	for to, want := range map[string][]string{"all": {"to/b", "to/c"}, "c": {"to/c"}, "d": {"to/d"}} {
		var got []string
		for _, a := range c.AddresseesOf(to) {
			got = append(got, a.Topic)
		}
		if !slices.Equal(got, want) {
			t.Errorf("messages to %s go to %v; want %v", to, got, want)
		}
	}
}

func TestWrongDestinationsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`messages[0].to is "nobody": want one of destinations`:            func(c *Config) { c.Messages[0].To = "nobody" },
		`destinations.all[1] is 7: want the index of one of 2 addressees`: func(c *Config) { c.Destinations["all"][1] = 7 },
		`addressees[0].address is "198.18.0.2": want host:port`:           func(c *Config) { c.Addressees[0].Address = "198.18.0.2" },
		`addressees[1].topic is empty: want a topic`:                      func(c *Config) { c.Addressees[1].Topic = "" },
		`push.to is "nobody": want one of destinations`:                   func(c *Config) { c.Messages, c.Push = nil, &Push{To: "nobody", PeriodSeconds: 1} },
	} {
		c := sending()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
