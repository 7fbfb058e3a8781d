// Package streams decides who should receive whose messages: the table of streams in a run's plan. The live figures and the
// analysis read it.
package streams

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
)

// Client is an instance of an app, or a further name under which one sends.
type Client struct {
	Name string
	// Protocol of its connection; empty if it is not known.
	Protocol string
	// Brokers that it may use, or the network on which it broadcasts; null if they are not known.
	Brokers []string
	// Topics to which it sends, as far as they are planned.
	Topics []string
	// AnyTopic is set for a program of the user's own, whose topics only its log has. Its brokers are not known.
	AnyTopic bool
	// Filters of its subscriptions; null if it does not subscribe.
	Filters []string
}

// Table returns the streams of all clients. Passages join their brokers.
func Table(clients []Client, passages []runapi.PlannedPassage) *runapi.Streams {
	t := table{passages: map[string][]runapi.PlannedPassage{}, rows: map[string]int{}, audiences: map[string]int{},
		made: &runapi.Streams{Rows: []runapi.PlannedStream{}, Audiences: [][]string{}}}
	for _, p := range passages {
		t.passages[p.From] = append(t.passages[p.From], p)
	}
	t.groupSubscribers(clients)
	for i := range clients {
		c := &clients[i]
		for _, topic := range c.Topics {
			t.addTopic(c, topic)
		}
		if c.AnyTopic {
			t.addAnyTopic(c)
		}
	}
	return t.made
}

// subscribers are clients that receive the same.
type subscribers struct {
	Client
	names []string
}

type table struct {
	passages    map[string][]runapi.PlannedPassage // by the broker where they begin
	subscribers []subscribers
	rows        map[string]int // by what publishers of a row have in common
	audiences   map[string]int // by the groups of subscribers in them
	made        *runapi.Streams
}

// key of some texts, none of which has a NUL.
func key(parts ...[]string) string {
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(strings.Join(part, "\x00") + "\x00\x00")
	}
	return all.String()
}

func (t *table) groupSubscribers(clients []Client) {
	known := map[string]int{}
	for _, c := range clients {
		if len(c.Filters) == 0 {
			continue
		}
		k := key([]string{c.Protocol}, c.Brokers, c.Filters)
		i, found := known[k]
		if !found {
			i = len(t.subscribers)
			known[k], t.subscribers = i, append(t.subscribers, subscribers{Client: c})
		}
		t.subscribers[i].names = append(t.subscribers[i].names, c.Name)
	}
}

// add a publisher to the row of a key, a new one if there is none.
func (t *table) add(k, publisher string, newRow func() runapi.PlannedStream) {
	i, known := t.rows[k]
	if !known {
		i = len(t.made.Rows)
		t.rows[k], t.made.Rows = i, append(t.made.Rows, newRow())
	}
	if row := &t.made.Rows[i]; !slices.Contains(row.Publishers[max(len(row.Publishers)-1, 0):], publisher) {
		row.Publishers = append(row.Publishers, publisher)
	}
}

func (t *table) addTopic(c *Client, topic string) {
	t.add(key([]string{topic, c.Protocol}, c.Brokers), c.Name, func() runapi.PlannedStream {
		reached := t.topicsAtBrokers(c.Brokers, topic)
		groups := map[string][]int{} // by the topic under which they receive
		for i := range t.subscribers {
			if heard, hears := t.subscribers[i].receive(c, topic, reached); hears {
				groups[heard] = append(groups[heard], i)
			}
		}
		row := runapi.PlannedStream{Topic: topic}
		for _, heard := range slices.Sorted(maps.Keys(groups)) {
			one := runapi.Heard{Topic: heard, Audience: t.audience(groups[heard])}
			if heard == topic {
				one.Topic = ""
			}
			row.Heard = append(row.Heard, one)
		}
		return row
	})
}

// addAnyTopic adds a row for each group of subscribers, with their filters.
func (t *table) addAnyTopic(c *Client) {
	for i := range t.subscribers {
		s := &t.subscribers[i]
		if !speakTheSame(c, &s.Client) {
			continue
		}
		t.add(key([]string{c.Protocol, fmt.Sprint(i)}), c.Name, func() runapi.PlannedStream {
			return runapi.PlannedStream{Filters: s.Filters, Heard: []runapi.Heard{{Audience: t.audience([]int{i})}}}
		})
	}
}

// audience returns the index of the audience of some groups of subscribers.
func (t *table) audience(groups []int) int {
	k := fmt.Sprint(groups)
	i, known := t.audiences[k]
	if !known {
		i = len(t.made.Audiences)
		var names []string
		for _, group := range groups {
			names = append(names, t.subscribers[group].names...)
		}
		t.audiences[k], t.made.Audiences = i, append(t.made.Audiences, names)
	}
	return i
}

// receive reports whether subscribers receive what a publisher sends to a topic, and under which topic.
func (s *subscribers) receive(c *Client, topic string, reached map[string][]string) (heard string, hears bool) {
	if len(c.Brokers) == 0 || len(s.Brokers) == 0 {
		return topic, speakTheSame(c, &s.Client) && mqtttopic.MatchAny(s.Filters, topic)
	}
	for _, broker := range s.Brokers {
		for _, name := range reached[broker] {
			if mqtttopic.MatchAny(s.Filters, name) {
				return name, true
			}
		}
	}
	return "", false
}

// speakTheSame reports whether clients of unknown brokers may exchange messages.
func speakTheSame(a, b *Client) bool {
	return a.Protocol == "" || b.Protocol == "" || a.Protocol == b.Protocol
}

// maxTopicNames of one message at one broker: a circle of bridges that add prefixes would make ever new ones.
const maxTopicNames = 16

// topicsAtBrokers finds the brokers that a message reaches, and its topics there.
func (t *table) topicsAtBrokers(brokers []string, topic string) map[string][]string {
	type place struct{ broker, name string }
	names := map[string][]string{}
	var ahead []place
	for _, broker := range brokers {
		ahead = append(ahead, place{broker, topic})
	}
	for len(ahead) > 0 {
		at := ahead[len(ahead)-1]
		ahead = ahead[:len(ahead)-1]
		if here := names[at.broker]; slices.Contains(here, at.name) || len(here) == maxTopicNames {
			continue
		}
		names[at.broker] = append(names[at.broker], at.name)
		for _, p := range t.passages[at.broker] {
			bare, passes := strings.CutPrefix(at.name, p.StripPrefix)
			if passes && mqtttopic.MatchAny(p.Filters, bare) {
				ahead = append(ahead, place{p.To, p.AddPrefix + bare})
			}
		}
	}
	return names
}
