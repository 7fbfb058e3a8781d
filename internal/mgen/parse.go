package mgen

import (
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse reads a script, with or without the byte order mark that some editors write. The error is an *Error.
func Parse(text string) (*Script, error) {
	s, text := &Script{}, strings.TrimPrefix(text, "\ufeff")
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		first, line := i, lines[i]
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for continued(line) {
			line = strings.TrimSuffix(strings.TrimRight(line, " \t"), `\`)
			if i++; i == len(lines) {
				return nil, &Error{first + 1, `ends with \ and nothing follows: leave it out, or continue the line`}
			}
			line += " " + lines[i]
		}
		if err := s.line(first+1, line); err != nil {
			return nil, &Error{first + 1, err.Error()}
		}
	}
	slices.SortStableFunc(s.Events, func(a, b Event) int { return int(min(max(a.At-b.At, -1), 1)) })
	if err := s.checkPorts(); err != nil {
		return s, err
	}
	return s, s.checkFlows()
}

func continued(line string) bool { return strings.HasSuffix(strings.TrimRight(line, " \t"), `\`) }

// words are those of a line; brackets are words of their own.
type words struct{ left []string }

func split(line string) *words {
	return &words{strings.Fields(strings.NewReplacer("[", " [ ", "]", " ] ").Replace(line))}
}

// next returns the next word, or an error that says what is expected.
func (w *words) next(want string) (string, error) {
	if len(w.left) == 0 {
		return "", fmt.Errorf("ends where %s should be", want)
	}
	word := w.left[0]
	w.left = w.left[1:]
	return word, nil
}

// take takes the next word if it is this one.
func (w *words) take(word string) bool {
	if len(w.left) > 0 && strings.EqualFold(w.left[0], word) {
		w.left = w.left[1:]
		return true
	}
	return false
}

func (w *words) expect(word string) error {
	got, err := w.next(word)
	if err == nil && !strings.EqualFold(got, word) {
		err = fmt.Errorf("%q is where %s should be", got, word)
	}
	return err
}

var (
	events    = []Word{On, Mod, Off, Listen, Ignore, Join, Leave}
	timeForm  = regexp.MustCompile(`^[0-9]+([.][0-9]*)?$|^[.][0-9]+$`)
	clockForm = regexp.MustCompile(`(?i)^([01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9]([.][0-9]{1,6})?(GMT)?$`)
	hostForm  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	nameForm  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,15}$`)
	fileForm  = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,255}$`)
)

func (s *Script) line(number int, text string) error {
	w := split(text)
	if len(w.left) == 0 {
		return nil
	}
	if slices.ContainsFunc(w.left, func(word string) bool { return strings.HasPrefix(word, "#") }) {
		return fmt.Errorf("has a comment behind a command: give comments lines of their own, as MGEN takes them there only")
	}
	at := time.Duration(0)
	timed := timeForm.MatchString(w.left[0])
	if timed {
		seconds, err := strconv.ParseFloat(w.left[0], 64)
		if err != nil || seconds > maxSeconds {
			return fmt.Errorf("time %s: want seconds from 0 to %.0f", w.left[0], maxSeconds)
		}
		at = time.Duration(math.Round(seconds * 1e9))
		w.left = w.left[1:]
	}
	name, err := w.next("an event, such as ON")
	if err != nil {
		return err
	}
	if word := Word(strings.ToUpper(name)); slices.Contains(events, word) {
		if len(s.Events) >= MaxEvents {
			return fmt.Errorf("is event number %d: a script may have %d", len(s.Events)+1, MaxEvents)
		}
		event := Event{Line: number, At: at, Type: word}
		if err := event.parse(w); err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
		s.Events = append(s.Events, event)
		return nil
	}
	if timed {
		return fmt.Errorf("%q is no event: want ON, MOD, OFF, LISTEN, IGNORE, JOIN or LEAVE", name)
	}
	return s.global(number, strings.ToUpper(name), w)
}

func (e *Event) parse(w *words) error {
	switch e.Type {
	case Listen, Ignore:
		return e.reception(w)
	case Join, Leave:
		return e.membership(w)
	}
	id, err := w.next("a flow's number")
	if err != nil {
		return err
	}
	flow, err := strconv.ParseUint(id, 10, 32)
	if err != nil || flow == 0 {
		return fmt.Errorf("flow %q: want a number from 1 to %d", id, uint32(math.MaxUint32))
	}
	e.Flow = uint32(flow)
	if e.Type == Off {
		return w.end()
	}
	for len(w.left) > 0 {
		if err := e.Options.parse(w); err != nil {
			return err
		}
	}
	return e.checkSize()
}

func (w *words) end() error {
	if len(w.left) > 0 {
		return fmt.Errorf("%q is too much: the line should end before it", w.left[0])
	}
	return nil
}

func (e *Event) reception(w *words) (err error) {
	protocol, err := w.next("UDP or TCP")
	if err != nil {
		return err
	}
	if e.Protocol = Protocol(strings.ToUpper(protocol)); e.Protocol != UDP && e.Protocol != TCP {
		return fmt.Errorf("protocol %q: want UDP or TCP", protocol)
	}
	if e.Ports, err = w.ports(); err != nil {
		return err
	}
	return w.end()
}

// ports reads a list such as 5000,5003-5005.
func (w *words) ports() (ranges []PortRange, err error) {
	list, err := w.next("ports, such as 5000,5003-5005")
	if err != nil {
		return nil, err
	}
	total := 0
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.ParseUint(first, 10, 16)
		b, errB := strconv.ParseUint(last, 10, 16)
		if errA != nil || errB != nil || a == 0 || b < a {
			return nil, fmt.Errorf("ports %q: want numbers from 1 to 65535 and ranges, without spaces, such as 5000,5003-5005", list)
		}
		if total += int(b-a) + 1; total > maxLinePorts {
			return nil, fmt.Errorf("ports %q: want %d in one line at most", list, maxLinePorts)
		}
		ranges = append(ranges, PortRange{uint16(a), uint16(b)})
	}
	return ranges, nil
}

func (e *Event) membership(w *words) (err error) {
	if e.Group, err = w.next("a multicast group's address"); err != nil {
		return err
	}
	if address, err := netip.ParseAddr(e.Group); err != nil || !address.Is4() || !address.IsMulticast() {
		return fmt.Errorf("group %q: want an IPv4 multicast address, from 224.0.0.0 to 239.255.255.255", e.Group)
	}
	for len(w.left) > 0 {
		switch word, _ := w.next(""); strings.ToUpper(word) {
		case "SRC":
			e.Source, err = w.matching(hostForm, "an IPv4 address or a node's name")
		case "INTERFACE":
			e.Interface, err = w.matching(nameForm, "an interface's name")
		case "PORT":
			e.Ports, err = w.ports()
		default:
			return fmt.Errorf("%q is no option: want SRC, INTERFACE or PORT", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *words) matching(form *regexp.Regexp, want string) (string, error) {
	word, err := w.next(want)
	if err == nil && !form.MatchString(word) {
		err = fmt.Errorf("%q is no good: want %s", word, want)
	}
	return word, err
}

// number reads an integer in decimal or, with 0x, hexadecimal notation.
func (w *words) number(name string, least, most int64) (int64, error) {
	want := fmt.Sprintf("a number from %d to %d", least, most)
	word, err := w.next(want)
	if err != nil {
		return 0, err
	}
	base := 10
	digits := word
	if after, isHex := strings.CutPrefix(strings.ToLower(word), "0x"); isHex {
		base, digits = 16, after
	}
	value, err := strconv.ParseInt(digits, base, 64)
	if err != nil || value < least || value > most {
		return 0, fmt.Errorf("%s %q: want %s", name, word, want)
	}
	return value, nil
}

var decimalForm = regexp.MustCompile(`^-?([0-9]{1,12}([.][0-9]{0,12})?|[.][0-9]{1,12})$`)

func (w *words) decimal(name string, least, most float64) (float64, error) {
	want := fmt.Sprintf("a number from %v to %v", least, most)
	word, err := w.next(want)
	if err != nil {
		return 0, err
	}
	value, err := strconv.ParseFloat(word, 64)
	if err != nil || !decimalForm.MatchString(word) || value < least || value > most {
		return 0, fmt.Errorf("%s %q: want %s", name, word, want)
	}
	return value + 0, nil // -0 is 0
}

// toggle reads ON or OFF.
func (w *words) toggle(name string) (bool, error) {
	word, err := w.next("ON or OFF")
	if err == nil && !strings.EqualFold(word, "ON") && !strings.EqualFold(word, "OFF") {
		err = fmt.Errorf("%s %q: want ON or OFF", name, word)
	}
	return strings.EqualFold(word, "ON"), err
}

// globals has the supported global commands, with the parsers of their values.
var globals = map[string]func(*words) error{
	"START": func(w *words) error {
		_, err := w.matching(clockForm, "a time of day, such as 13:30:00GMT")
		return err
	},
	"OFFSET":    func(w *words) error { _, err := w.decimal("offset", 0, maxSeconds); return err },
	"TOS":       func(w *words) error { _, err := w.number("TOS", 0, 255); return err },
	"TTL":       func(w *words) error { _, err := w.number("TTL", 1, 255); return err },
	"LABEL":     func(w *words) error { _, err := w.number("label", 0, math.MaxUint32>>4); return err },
	"TXBUFFER":  func(w *words) error { _, err := w.number("buffer", 1, math.MaxInt32); return err },
	"RXBUFFER":  func(w *words) error { _, err := w.number("buffer", 1, math.MaxInt32); return err },
	"INTERFACE": func(w *words) error { _, err := w.matching(nameForm, "an interface's name"); return err },
	"QUEUE":     func(w *words) error { _, err := w.number("queue", -1, math.MaxInt32); return err },
	"BROADCAST": func(w *words) error { _, err := w.toggle("BROADCAST"); return err },
}

// refusedGlobals are commands of MGEN that would read or write other files.
var refusedGlobals = map[string]string{
	"INPUT":     "put the other script's lines into this one",
	"OUTPUT":    "events go to the message log",
	"LOG":       "events go to the message log",
	"SAVE":      "a script begins from its start",
	"LOCALTIME": "events go to the message log, which has no time zone",
	"LOGDATA":   "what messages carry is not logged",
	"DATA":      "as a global command Debian's mgen does not take it; give DATA as an option of ON",
}

func (s *Script) global(number int, name string, w *words) error {
	if why, known := refusedGlobals[name]; known {
		return fmt.Errorf("%s is not taken: %s", name, why)
	}
	read, known := globals[name]
	if !known {
		return fmt.Errorf("%q is no event and no global command: want ON, MOD, OFF, LISTEN, IGNORE, JOIN or LEAVE, or "+
			"START, OFFSET, TOS, TTL, TXBUFFER, RXBUFFER, INTERFACE, QUEUE, BROADCAST or LABEL", name)
	}
	value := strings.Join(w.left, " ")
	if err := read(w); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := w.end(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.Globals = append(s.Globals, Global{Line: number, Name: name, Value: value})
	return nil
}

func (o *Options) parse(w *words) (err error) {
	word, _ := w.next("")
	switch name := strings.ToUpper(word); name {
	case string(UDP), string(TCP), string(Sink):
		o.Protocol = Protocol(name)
	case "DST":
		o.Destination, err = w.destination()
	case "SRC":
		o.SourcePort, err = numberAs[uint16](w, name, 0, math.MaxUint16)
	case "COUNT":
		o.Count, err = numberAs[int64](w, name, -1, math.MaxInt32)
	case "SEQUENCE":
		o.Sequence, err = numberAs[uint32](w, name, 0, math.MaxUint32)
	case "TOS":
		o.TOS, err = numberAs[uint8](w, name, 0, 255)
	case "TTL":
		o.TTL, err = numberAs[uint8](w, name, 1, 255)
	case "TXBUFFER":
		o.TXBuffer, err = numberAs[uint32](w, name, 1, math.MaxInt32)
	case "LABEL":
		o.Label, err = numberAs[uint32](w, name, 0, math.MaxUint32>>4)
	case "QUEUE":
		o.Queue, err = numberAs[int64](w, name, -1, math.MaxInt32)
	case "INTERFACE":
		o.Interface, err = w.matching(nameForm, "an interface's name")
	case "BROADCAST":
		var on bool
		on, err = w.toggle(name)
		o.Broadcast = &on
	case "CONNECT":
		o.Connect = true
	case "DATA":
		o.Data, err = w.data()
	case "RXBUFFER", "LOGDATA":
		return fmt.Errorf("%s is not taken as an option of a flow: Debian's mgen refuses it; RXBUFFER may be a global command", name)
	default:
		return o.pattern(name, w)
	}
	return err
}

func numberAs[T uint8 | uint16 | uint32 | int64](w *words, name string, least, most int64) (*T, error) {
	value, err := w.number(name, least, most)
	converted := T(value)
	return &converted, err
}

func (w *words) destination() (*Destination, error) {
	const want = "an address or a node's name and a port, such as 198.18.0.2/5000 or veh-1/5000"
	word, err := w.next(want)
	if err != nil {
		return nil, err
	}
	host, port, _ := strings.Cut(word, "/")
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || !hostForm.MatchString(host) {
		return nil, fmt.Errorf("DST %q: want %s", word, want)
	}
	return &Destination{host, uint16(number)}, nil
}

func (w *words) data() ([]byte, error) {
	if err := w.expect("["); err != nil {
		return nil, fmt.Errorf("DATA: %w", err)
	}
	digits, err := w.next("hexadecimal digits")
	if err != nil {
		return nil, err
	}
	data, err := hex.DecodeString(digits)
	if err != nil || len(data) == 0 || len(data) > MaxUDPBytes {
		return nil, fmt.Errorf("DATA %q: want pairs of hexadecimal digits, such as [0a0b]", digits)
	}
	return data, w.expect("]")
}

// abbreviates reports whether a word is an abbreviation of a longer one in MGEN.
func abbreviates(word, whole string) bool { return len(word) >= 3 && strings.HasPrefix(whole, word) }

var patternKinds = []PatternKind{Periodic, Poisson, Jitter, Bursts, Clone}

func (o *Options) pattern(name string, w *words) error {
	p, err := w.pattern(name, 0)
	o.Pattern = p
	return err
}

func (w *words) pattern(name string, depth int) (*Pattern, error) {
	i := slices.IndexFunc(patternKinds, func(kind PatternKind) bool { return abbreviates(strings.ToUpper(name), string(kind)) })
	if i < 0 {
		if depth > 0 {
			return nil, fmt.Errorf("%q is no pattern: want PERIODIC, POISSON, JITTER or BURST", name)
		}
		return nil, fmt.Errorf("%q is no option of a flow: want UDP, TCP, DST, SRC, a pattern (PERIODIC, POISSON, JITTER, BURST or CLONE), COUNT, "+
			"SEQUENCE, DATA, TOS, TTL, TXBUFFER, INTERFACE, QUEUE, BROADCAST, CONNECT or LABEL", name)
	}
	p := &Pattern{Kind: patternKinds[i]}
	if depth >= maxNesting || depth > 0 && p.Kind == Clone {
		return nil, fmt.Errorf("%s cannot be within BURST here: want PERIODIC, POISSON or JITTER", p.Kind)
	}
	err := w.expect("[")
	if err == nil {
		err = p.parameters(w, depth)
	}
	if err == nil {
		err = w.expect("]")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Kind, err)
	}
	return p, nil
}

func (p *Pattern) parameters(w *words, depth int) (err error) {
	switch p.Kind {
	case Bursts:
		p.Burst, err = w.burst(depth)
		return err
	case Clone:
		return p.clone(w)
	}
	if p.Rate, err = w.decimal("rate", -1, maxRate); err != nil {
		return err
	}
	bytes, err := w.number("size", MinBytes, MaxTCPBytes)
	if err != nil {
		return err
	}
	if p.Bytes = int(bytes); p.Kind == Jitter {
		if p.Fraction, err = w.decimal("jitter", 0, 0.5); err == nil && p.Fraction == 0 {
			err = fmt.Errorf("jitter is 0: want a fraction above 0, to 0.5, or PERIODIC")
		}
	}
	return err
}

func (p *Pattern) clone(w *words) (err error) {
	if err = w.expect("tcpdump"); err != nil {
		return err
	}
	if p.File, err = w.matching(fileForm, "a file's name"); err != nil {
		return err
	}
	p.Repeat = -1
	// The guide's example has brackets around the count, and its syntax has none.
	bracketed := w.take("[")
	if len(w.left) > 0 && w.left[0] != "]" {
		var repeat int64
		repeat, err = w.number("repeat count", -1, math.MaxInt32)
		p.Repeat = int(repeat)
	}
	if err == nil && bracketed {
		err = w.expect("]")
	}
	return err
}

func (w *words) burst(depth int) (b *Burst, err error) {
	b = &Burst{}
	kind, err := w.next("REGULAR or RANDOM")
	if err != nil {
		return nil, err
	}
	switch kind = strings.ToUpper(kind); {
	case abbreviates(kind, "RANDOM"):
		b.Random = true
	case !abbreviates(kind, "REGULAR"):
		return nil, fmt.Errorf("%q is where REGULAR or RANDOM should be", kind)
	}
	if b.IntervalSeconds, err = w.decimal("interval", 0.001, maxSeconds); err != nil {
		return nil, err
	}
	name, err := w.next("a pattern, such as PERIODIC")
	if err != nil {
		return nil, err
	}
	inner, err := w.pattern(name, depth+1)
	if err != nil {
		return nil, err
	}
	b.Pattern = *inner
	if kind, err = w.next("FIXED or EXPONENTIAL"); err != nil {
		return nil, err
	}
	switch kind = strings.ToUpper(kind); {
	case abbreviates(kind, "EXPONENTIAL"):
		b.Exponential = true
	case !abbreviates(kind, "FIXED"):
		return nil, fmt.Errorf("%q is where FIXED or EXPONENTIAL should be", kind)
	}
	b.DurationSeconds, err = w.decimal("duration", 0.001, maxSeconds)
	return b, err
}

// checkSize checks the size of an event with its protocol in the same line. checkFlows checks the others.
func (e *Event) checkSize() error {
	if e.Type == On && e.Options.Pattern == nil {
		return fmt.Errorf("flow %d has no pattern: want one, such as PERIODIC [1.0 1024]", e.Flow)
	}
	if e.Type == Mod && e.Options.Protocol != "" {
		return fmt.Errorf("flow %d: a flow's protocol cannot be changed: turn it OFF, and another one ON", e.Flow)
	}
	if e.Type == Mod && e.Options.SourcePort != nil {
		return fmt.Errorf("flow %d: a flow's SRC cannot be changed: turn it OFF, and another one ON", e.Flow)
	}
	return nil
}

// checkPorts returns an error for a script that listens to too many ports, as JOIN with a port does. Each node's check looks at every one.
func (s *Script) checkPorts() error {
	total := 0
	for _, e := range s.Events {
		if e.Type != Listen && e.Type != Join {
			continue
		}
		for _, r := range e.Ports {
			total += int(r.Last-r.First) + 1
		}
		if total > maxScriptPorts {
			return &Error{e.Line, fmt.Sprintf("%s: the script has %d ports up to this line: want %d at most", e.Type, total, maxScriptPorts)}
		}
	}
	return nil
}

// checkFlows returns errors for events of a flow that is not on, or on already, and for too large messages.
func (s *Script) checkFlows() error {
	on := map[uint32]Event{}
	for _, e := range s.Events {
		before, isOn := on[e.Flow]
		switch {
		case e.Type == On && isOn:
			return &Error{e.Line, fmt.Sprintf("ON: flow %d is on since line %d: turn it OFF before, or take another number", e.Flow, before.Line)}
		case e.Type == On:
			on[e.Flow], before = e, e
		case (e.Type == Mod || e.Type == Off) && !isOn:
			return &Error{e.Line, fmt.Sprintf("%s: flow %d is not on at %s: want an ON event of that flow before", e.Type, e.Flow, seconds(e.At))}
		case e.Type == Off:
			delete(on, e.Flow)
		}
		if p := e.Options.Pattern; p != nil && p.core().Bytes > MaxUDPBytes && before.Options.Protocol == UDP {
			return &Error{e.Line, fmt.Sprintf("%s: size %d: a UDP message may have %d bytes at most, as MGEN has it", e.Type, p.core().Bytes, MaxUDPBytes)}
		}
	}
	return nil
}
