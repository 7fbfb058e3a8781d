// Package mqtttopic has the rules of MQTT's topics and topic filters (OASIS MQTT 3.1.1, 4.7), which are those of every protocol here.
package mqtttopic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxTopic = 65535

// Valid returns an error for an invalid topic of a message.
func Valid(topic string) error {
	switch {
	case topic == "":
		return errors.New("topic is empty: want at least one character")
	case len(topic) > maxTopic:
		return fmt.Errorf("topic has %d bytes: want at most %d", len(topic), maxTopic)
	case strings.ContainsAny(topic, "+#\x00"):
		return fmt.Errorf("topic %q: want no +, # or NUL, which only filters have", topic)
	case !utf8.ValidString(topic):
		return fmt.Errorf("topic %q: want UTF-8", topic)
	}
	return nil
}

// ValidFilter returns an error for an invalid topic filter.
func ValidFilter(filter string) error {
	if filter == "" || len(filter) > maxTopic || strings.ContainsRune(filter, 0) || !utf8.ValidString(filter) {
		return fmt.Errorf("topic filter %q: want 1 to %d bytes of UTF-8 without NUL", filter, maxTopic)
	}
	levels := strings.Split(filter, "/")
	for i, level := range levels {
		last := i == len(levels)-1
		if strings.Contains(level, "#") && (level != "#" || !last) {
			return fmt.Errorf("topic filter %q: want # alone in the last level", filter)
		}
		if strings.Contains(level, "+") && level != "+" {
			return fmt.Errorf("topic filter %q: want + alone in its level", filter)
		}
	}
	return nil
}

// MatchAny reports whether one of some valid filters matches a topic.
func MatchAny(filters []string, topic string) bool {
	return slices.ContainsFunc(filters, func(filter string) bool { return Match(filter, topic) })
}

// Match reports whether a valid filter matches a topic. A leading wildcard does not match topics that begin with $.
func Match(filter, topic string) bool {
	if strings.HasPrefix(topic, "$") && (strings.HasPrefix(filter, "#") || strings.HasPrefix(filter, "+")) {
		return false
	}
	for {
		if filter == "#" {
			return true
		}
		want, filterRest, filterMore := strings.Cut(filter, "/")
		level, topicRest, topicMore := strings.Cut(topic, "/")
		if want != "+" && want != level {
			return false
		}
		if !topicMore {
			return !filterMore || filterRest == "#" // a/# matches a too
		}
		if !filterMore {
			return false
		}
		filter, topic = filterRest, topicRest
	}
}
