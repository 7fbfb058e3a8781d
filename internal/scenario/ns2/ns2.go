// Package ns2 reads the movement scripts of ns-2 (setdest, BonnMotion, SUMO's traceExporter), which CORE replays too:
//
//	$node_(0) set X_ 150.0                          where a node begins; Y_ and Z_ likewise
//	$ns_ at 5.0 "$node_(0) setdest 100.0 200.0 10"  from 5 s on to x 100, y 200 at 10 m/s
//	$ns_ at 5.0 "$node_(0) set X_ 100.0"            a jump
//
// Semicolons separate statements of a line, and # begins a comment. Coordinates are metres on a plane.
// A speed of 0 jumps to the destination, as in CORE. The reader does not execute Tcl: loops and variables are unknown.
package ns2

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/internal/reading"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
)

// Parse parses a file. Errors about the file contain its name, and are *scenario.SyntaxError. A node is the platform of its number. If there is a node 0,
// numbers count from there, so that it is platform 1.
func Parse(r io.Reader, name string, options tracks.Options) (*tracks.File, error) {
	p := &parser{file: tracks.NewFile(name, options), plane: options.Plane, nodes: map[int]*node{}}
	p.file.ByName = true
	err := reading.EachLine(r, name, func(line []byte, number int) error {
		p.line = number
		return p.statements(string(line))
	})
	if err == nil {
		err = p.tracks(name)
	}
	return p.file, err
}

type parser struct {
	file  *tracks.File
	plane *tracks.Plane
	nodes map[int]*node
	line  int
	count int
}

// node is a node with its orders.
type node struct{ orders []order }

// order is an order to a node at a moment: to set one of its coordinates, or to move.
type order struct {
	at time.Duration
	// initial orders have no time, and come before those at 0.
	initial bool
	line    int
	// axis is the axis to set, 0 to 2, or going.
	axis int
	// to is the destination, or the value of the axis.
	to    [3]float64
	speed float64
}

const going = -1

var (
	// quoting is Tcl's quoting, which does not matter here.
	quoting = strings.NewReplacer(`"`, " ", "{", " ", "}", " ")
	nodeOf  = regexp.MustCompile(`^\$[A-Za-z_]\w*\((\d+)\)$`)
	axes    = map[string]int{"X_": 0, "Y_": 1, "Z_": 2}
)

// statements parses a line's statements, which semicolons separate. Those in the same quotes have one time.
func (p *parser) statements(line string) error {
	o, quotes, braces := order{initial: true}, 0, 0
	for text := range strings.SplitSeq(line, ";") {
		if strings.HasPrefix(strings.TrimSpace(text), "#") {
			return nil
		}
		words := strings.Fields(quoting.Replace(text))
		if len(words) >= 3 && strings.HasPrefix(words[0], "$") && words[1] == "at" {
			at, err := reading.Seconds([]byte(words[2]))
			if err != nil {
				return err
			}
			o, quotes, braces, words = order{at: at}, 0, 0, words[3:]
		}
		o.line, o.axis = p.line, going
		if err := p.statement(words, o); err != nil {
			return err
		}
		quotes += strings.Count(text, `"`)
		if braces += strings.Count(text, "{") - strings.Count(text, "}"); quotes%2 == 0 && braces <= 0 {
			o = order{initial: true}
		}
	}
	return nil
}

// statement parses a statement of an order that has its time.
func (p *parser) statement(words []string, o order) error {
	if len(words) == 0 { // brackets alone
		return nil
	}
	if len(words) < 2 {
		p.file.Tally.Unknown(strings.Join(words, " "))
		return nil
	}
	match := nodeOf.FindStringSubmatch(words[0])
	if match == nil || (words[1] != "set" && words[1] != "setdest") {
		p.file.Tally.Unknown(words[0] + " " + words[1])
		return nil
	}
	number, err := strconv.Atoi(match[1])
	if err != nil || number > scenario.MaxPlatform {
		return fmt.Errorf("node is %q: want a number from 0 to %d", reading.Short([]byte(words[0])), scenario.MaxPlatform)
	}
	return p.order(number, o, words[1], words[2:])
}

// order parses an order to a node.
func (p *parser) order(number int, o order, verb string, arguments []string) (err error) {
	if verb == "set" {
		axis, known := 0, false
		if len(arguments) == 2 {
			axis, known = axes[arguments[0]]
		}
		if !known {
			p.file.Tally.Unknown(strings.Join(append([]string{"set"}, arguments[:min(len(arguments), 1)]...), " "))
			return nil
		}
		o.axis = axis
		o.to[axis], err = p.coordinate(arguments[1], arguments[0])
	} else {
		err = p.destination(&o, arguments)
	}
	if err != nil {
		return err
	}
	if p.count++; p.count > tracks.MaxPoints {
		return fmt.Errorf("the file has more than %d orders: want fewer", tracks.MaxPoints)
	}
	n := p.nodes[number]
	if n == nil {
		n = &node{}
		p.nodes[number] = n
	}
	n.orders = append(n.orders, o)
	return nil
}

func (p *parser) coordinate(text, what string) (float64, error) {
	if p.plane == nil {
		return 0, tracks.ErrNoPlane
	}
	return p.plane.Coordinate(text, what)
}

// destination parses setdest's arguments: x, y and speed.
func (p *parser) destination(o *order, arguments []string) (err error) {
	if len(arguments) != 3 {
		return fmt.Errorf("setdest has %d values: want x, y and speed", len(arguments))
	}
	for i, name := range []string{"x", "y"} {
		if o.to[i], err = p.coordinate(arguments[i], name); err != nil {
			return err
		}
	}
	if o.speed, err = reading.Float([]byte(arguments[2]), "speed"); err == nil && o.speed < 0 {
		err = fmt.Errorf("speed is %s: want metres per second, not negative", arguments[2])
	}
	return err
}

// tracks returns the tracks of all nodes.
func (p *parser) tracks(name string) error {
	shift := 0
	if p.nodes[0] != nil {
		shift = 1
		p.file.Tally.Warn("nodes are numbered from 0: node 0 is platform 1, and so on")
	}
	for _, number := range slices.Sorted(maps.Keys(p.nodes)) {
		if number+shift > scenario.MaxPlatform {
			return &scenario.SyntaxError{File: name, Line: p.nodes[number].orders[0].line, Reason: fmt.Sprintf("node is %d: want a number from 0 to %d", number, scenario.MaxPlatform-shift)}
		}
		w := &walk{parser: p, track: p.file.Numbered(number + shift), number: number}
		w.track.Name = strconv.Itoa(number)
		if line, err := w.orders(p.nodes[number].orders); err != nil {
			return &scenario.SyntaxError{File: name, Line: line, Reason: err.Error()}
		}
	}
	return nil
}

// walk computes a node's movement.
type walk struct {
	*parser
	track  *tracks.Track
	number int
	// from and to are the ends of the current path, at the times since and until; equal for a node at rest.
	from, to     [3]float64
	since, until time.Duration
	begun        bool
	line         int
}

// orders carries out the orders in the order of their times. It returns the line of an order that fails.
func (w *walk) orders(orders []order) (line int, err error) {
	slices.SortStableFunc(orders, inTime)
	for i, o := range orders {
		w.line = o.line
		if err := w.carryOut(o, i+1 < len(orders) && orders[i+1].at == o.at && orders[i+1].axis != going); err != nil {
			return o.line, err
		}
	}
	if w.until > w.since {
		return w.line, w.point(w.until, w.to, false)
	}
	return 0, nil
}

// inTime compares orders by their times.
func inTime(a, b order) int {
	if a.initial != b.initial && a.at == b.at {
		if a.initial {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.at, b.at)
}

// carryOut carries out an order. If another coordinate is set at the same time, the place is not complete yet.
func (w *walk) carryOut(o order, more bool) error {
	here := w.at(o.at)
	if w.until > w.since { // it is moving, or has arrived
		if err := w.point(min(o.at, w.until), here, false); err != nil {
			return err
		}
		w.from, w.to, w.since, w.until = here, here, o.at, o.at
	}
	if o.axis != going {
		here[o.axis] = o.to[o.axis]
		w.from, w.to, w.since, w.until = here, here, o.at, o.at
		if more {
			return nil
		}
		return w.point(o.at, here, true)
	}
	if !w.begun {
		w.file.Tally.Warn(fmt.Sprintf("node %d is sent off before it has X_ and Y_: it begins at 0, 0", w.number))
	}
	if err := w.point(o.at, here, false); err != nil {
		return err
	}
	return w.goTo(o, here)
}

// goTo moves to a destination.
func (w *walk) goTo(o order, here [3]float64) error {
	to := [3]float64{o.to[0], o.to[1], here[2]}
	metres := math.Hypot(to[0]-here[0], to[1]-here[1]) * w.plane.Metres()
	w.from, w.to, w.since, w.until = here, to, o.at, o.at
	if o.speed == 0 || metres == 0 {
		w.from = to
		return w.point(o.at, to, true)
	}
	takes, err := reading.Duration(metres / o.speed)
	if err != nil {
		return fmt.Errorf("at %g m/s it takes more than a year to get there: want a higher speed", o.speed)
	}
	w.until = o.at + takes
	return nil
}

// at returns the node's place.
func (w *walk) at(t time.Duration) [3]float64 {
	if t >= w.until {
		return w.to
	}
	share := float64(t-w.since) / float64(w.until-w.since)
	here := w.from
	for i := range here {
		here[i] += share * (w.to[i] - w.from[i])
	}
	return here
}

// point adds a point to the track. A jump begins a segment, before which the node stays.
func (w *walk) point(at time.Duration, place [3]float64, jump bool) error {
	w.begun = true
	position := w.plane.Position(place[0], place[1], place[2])
	if err := w.file.Count(position); err != nil {
		return err
	}
	last := len(w.track.Segments) - 1
	if last < 0 || jump {
		w.track.Segments = append(w.track.Segments, nil)
		last++
	}
	w.track.Segments[last] = append(w.track.Segments[last], tracks.Point{At: at, Position: position, Line: w.line})
	return nil
}
