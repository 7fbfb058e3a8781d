// Program generate makes the synthetic script of messages in ../messages-synthetic.yaml: who sends what to whom, when, in
// the shape of the published experiment on RESTful messaging (E6), whose own script is not public.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// Shape of the script: two groups of five units, 97 messages in ten minutes.
const (
	seed          = 6
	count         = 97
	firstSeconds  = 5
	lengthSeconds = 600
)

var groups = map[string][]string{
	"a": {"lead-a", "a-1", "a-2", "a-3", "a-4"},
	"b": {"lead-b", "b-1", "b-2", "b-3", "b-4"},
}

var words = strings.Fields(`enemy vehicle observed grid moving north south east west bridge river road contact lost request support medical evacuation
ammunition fuel report position ready hold advance withdraw confirm two three four platoon company minutes hours at to from of the and`)

type message struct {
	atSeconds      float64
	from, to, text string
}

// messages of the script, in the order of their times.
func messages() []message {
	random := rand.New(rand.NewPCG(seed, 0))
	all := make([]message, count)
	for i := range all {
		own, other := "a", "b"
		if random.IntN(2) == 1 {
			own, other = other, own
		}
		from := groups[own][random.IntN(5)]
		all[i] = message{firstSeconds + float64(random.IntN(lengthSeconds*10))/10, from, addressee(random, own, other, from), text(random)}
	}
	slices.SortStableFunc(all, func(a, b message) int { return int(10*a.atSeconds) - int(10*b.atSeconds) })
	return all
}

// addressee: most messages stay in the group, one in five goes to the other group's leader, and some go to a group or to all.
func addressee(random *rand.Rand, own, other, from string) string {
	switch share := random.Float64(); {
	case share < 0.20:
		return "lead-" + other
	case share < 0.30:
		return own
	case share < 0.35:
		return "all"
	}
	others := slices.DeleteFunc(slices.Clone(groups[own]), func(name string) bool { return name == from })
	return others[random.IntN(len(others))]
}

func text(random *rand.Rand) string {
	said := make([]string, 3+random.IntN(25))
	for i := range said {
		said[i] = words[random.IntN(len(words))]
	}
	return strings.Join(said, " ")
}

func main() {
	for _, m := range messages() {
		fmt.Fprintf(os.Stdout, "      - {at: %.1fs, from: %s, to: %s, text: %s}\n", m.atSeconds, m.from, m.to, m.text)
	}
}
