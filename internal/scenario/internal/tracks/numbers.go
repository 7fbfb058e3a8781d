package tracks

import (
	"fmt"
	"strings"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/internal/reading"
)

// numbers returns the platforms of all tracks: by the rules for their names, else from the file, else from the source. Other tracks use
// their names as numbers, if all of these are free numbers, or the lowest free numbers in the order of the files.
func (p *putter) numbers() error {
	users := map[int]*placed{}
	next := map[*Source]int{}
	after := map[int]*placed{} // those that follow the first of their source
	for _, t := range p.all {
		given := false
		switch {
		case t.number != 0:
		case t.Platform != 0:
			t.number = t.Platform
		case t.source.Platform != 0:
			t.number, given = t.source.Platform+next[t.source], true
			if next[t.source] > 0 {
				after[t.number] = t
			}
			next[t.source]++
		}
		if t.number > scenario.MaxPlatform {
			return fmt.Errorf("%s: platform is %d: want a number from %d to %d", t.where(), t.number, scenario.MinPlatform, scenario.MaxPlatform)
		}
		if one, other := after[t.number], users[t.number]; given && one != nil && other != nil && other.source != t.source && !t.source.ByName {
			if other == one {
				other = t
			}
			return fmt.Errorf("platform %d is that of %s and that of %s, which has %d tracks: want each platform in one source",
				t.number, other.source.Name, one.source.Name, len(one.source.Tracks))
		}
		if t.number != 0 {
			users[t.number] = t
		}
	}
	p.numberRest(users)
	platforms := map[int]bool{}
	for _, t := range p.all {
		platforms[t.number] = true
	}
	if len(platforms) > scenario.MaxPlatforms {
		return fmt.Errorf("the sources have tracks of %d platforms: want at most %d", len(platforms), scenario.MaxPlatforms)
	}
	return nil
}

// key identifies a platform.
func (p *placed) key() any {
	if p.source.ByName {
		return p.name
	}
	return p
}

// numberRest numbers the remaining tracks.
func (p *putter) numberRest(users map[int]*placed) {
	var rest []*placed // the first of each platform
	first := map[any]*placed{}
	for _, t := range p.all {
		if t.number == 0 && first[t.key()] == nil {
			first[t.key()] = t
			rest = append(rest, t)
		}
	}
	if !namesFit(rest, users) {
		next := scenario.MinPlatform
		for _, t := range rest {
			for users[next] != nil {
				next++
			}
			t.number, users[next] = next, t
		}
		p.sayNumbers(rest)
	}
	for _, t := range p.all {
		if t.number == 0 {
			t.number = first[t.key()].number
		}
	}
}

// namesFit reports whether all names are free numbers, and then uses them.
func namesFit(rest []*placed, users map[int]*placed) bool {
	numbers := make([]int, len(rest))
	seen := map[int]bool{}
	for i, t := range rest {
		number, err := reading.Platform([]byte(strings.TrimSpace(t.name)))
		if err != nil || seen[number] || users[number] != nil {
			return false
		}
		numbers[i], seen[number] = number, true
	}
	for i, t := range rest {
		t.number = numbers[i]
	}
	return true
}

// maxListed is the most tracks that the message about their numbers lists.
const maxListed = 32

func (p *putter) sayNumbers(rest []*placed) {
	if len(p.all) < 2 {
		return
	}
	several := false
	for _, t := range rest {
		several = several || t.source != rest[0].source
	}
	var said []string
	for _, t := range rest[:min(len(rest), maxListed)] {
		who := t.label()
		if several {
			who = t.where()
		}
		said = append(said, fmt.Sprintf("%s is %d", who, t.number))
	}
	if more := len(rest) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("and so on for %d more", more))
	}
	p.tally.Warn("platforms are numbered in the order of the tracks (tracks.named says other numbers): " + strings.Join(said, ", "))
}
