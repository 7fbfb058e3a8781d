package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Shape of E6's script: its number of messages and of those that cross between the platoons are published, the rest is chosen.
const (
	scriptSeed     = 5
	scriptMessages = 97
	scriptCrossing = 17
	scriptToAll    = 3
	scriptToOwn    = 10
	scriptFirst    = 5   // seconds
	scriptSeconds  = 600 // from the first to the last
	// shortMessages are those of the short form, at shortPercent of their times.
	shortMessages = 16
	shortPercent  = 40
)

var platoonUnits = map[string][]string{
	"a": {"lead-a", "a-1", "a-2", "a-3", "a-4"},
	"b": {"lead-b", "b-1", "b-2", "b-3", "b-4"},
}

var scriptWords = strings.Fields(`enemy vehicle observed grid moving north south east west bridge river road contact lost request support medical evacuation
ammunition fuel report position ready hold advance withdraw confirm two three four platoon company minutes hours at to from of the and`)

// scripted is a message of the script.
type scripted struct {
	tenths         int // of a second, after the app's start
	From, To, Text string
}

// At returns the message's time as written in the file.
func (s scripted) At() string { return fmt.Sprintf("%d.%ds", s.tenths/10, s.tenths%10) }

// script makes E6's messages: made up, as the published script is not public.
func script() []scripted { return scriptOf(scriptSeed, addressee) }

// trafficScript makes the messages of scenarios/traffic-scripts, of which about as many as in E6 cross between the platoons.
func trafficScript() []scripted {
	return scriptOf(6, func(random *rand.Rand, _ int, own, other, from string) string {
		switch share := random.Float64(); {
		case share < 0.20:
			return "lead-" + other
		case share < 0.30:
			return own
		case share < 0.35:
			return "all"
		}
		return comrade(random, own, from)
	})
}

// scriptOf makes messages in the order of their times.
func scriptOf(seed uint64, addressee func(random *rand.Rand, i int, own, other, from string) string) []scripted {
	random := rand.New(rand.NewPCG(seed, 0))
	all := make([]scripted, scriptMessages)
	for i := range all {
		own, other := "a", "b"
		if random.IntN(2) == 1 {
			own, other = other, own
		}
		from := platoonUnits[own][random.IntN(5)]
		all[i] = scripted{10*scriptFirst + random.IntN(10*scriptSeconds), from, addressee(random, i, own, other, from), text(random)}
	}
	slices.SortStableFunc(all, func(a, b scripted) int { return cmp.Compare(a.tenths, b.tenths) })
	return all
}

// addressee returns that of message number i before the messages are ordered by time.
func addressee(random *rand.Rand, i int, own, other, from string) string {
	switch {
	case i < scriptToAll:
		return "all"
	case i < scriptCrossing:
		return "lead-" + other
	case i < scriptCrossing+scriptToOwn:
		return own
	}
	return comrade(random, own, from)
}

// comrade of a unit in its platoon.
func comrade(random *rand.Rand, own, from string) string {
	others := slices.DeleteFunc(slices.Clone(platoonUnits[own]), func(name string) bool { return name == from })
	return others[random.IntN(len(others))]
}

func text(random *rand.Rand) string {
	said := make([]string, 3+random.IntN(25))
	for i := range said {
		said[i] = scriptWords[random.IntN(len(scriptWords))]
	}
	return strings.Join(said, " ")
}

// shortScript has the first messages of the script, sooner after each other.
func shortScript() []scripted {
	first := script()[:shortMessages]
	for i := range first {
		first[i].tenths = first[i].tenths * shortPercent / 100
	}
	return first
}
