package tdma

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/wording"
)

// elementAttributes has the attributes of an element.
type elementAttributes struct {
	element string
	values  map[string]string
}

// attributes reads an element's attributes, of which only the known ones are allowed.
func attributes(start xml.StartElement, known ...string) (elementAttributes, error) {
	g := elementAttributes{start.Name.Local, map[string]string{}}
	for _, a := range start.Attr {
		switch {
		case a.Name.Space != "" || a.Name.Local == "xmlns": // such as the schema's location
		case slices.Contains(known, a.Name.Local):
			g.values[a.Name.Local] = strings.TrimSpace(a.Value)
		case len(known) == 0:
			return g, fmt.Errorf("<%s> has attribute %s: want none", g.element, a.Name.Local)
		default:
			return g, fmt.Errorf("<%s> has attribute %s: want %s", g.element, a.Name.Local, strings.Join(known, ", "))
		}
	}
	return g, nil
}

func (g elementAttributes) missing(name string) error {
	return fmt.Errorf("<%s> without %s", g.element, name)
}

func (g elementAttributes) invalid(name, want string) error {
	return fmt.Errorf("<%s %s=%q>: want %s", g.element, name, shorten(g.values[name]), want)
}

func shorten(text string) string { return wording.Shorten(text, 43) }

func (g elementAttributes) number(name string, least, most int) (int, error) {
	if _, ok := g.values[name]; !ok {
		return 0, g.missing(name)
	}
	n, ok := digits(g.values[name])
	if !ok || n < least || n > most {
		return 0, g.invalid(name, fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return n, nil
}

func digits(text string) (int, bool) {
	if text == "" || len(text) > 12 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// list reads numbers and ranges such as 0,5:7. It refuses more numbers than the widest range, so that it
// stays short.
func (g elementAttributes) list(name string, least, most int) (all []int, err error) {
	text, ok := g.values[name]
	if !ok {
		return nil, g.missing(name)
	}
	for item := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(item, ":")
		if !isRange {
			to = from
		}
		first, ok1 := digits(from)
		last, ok2 := digits(to)
		if !ok1 || !ok2 || first < least || last > most || last < first {
			return nil, g.invalid(name, fmt.Sprintf("numbers and ranges from %d to %d, such as %d:%d", least, most, least, most))
		}
		if len(all)+last-first > most-least {
			return nil, g.invalid(name, "each number once")
		}
		for n := first; n <= last; n++ {
			all = append(all, n)
		}
	}
	return all, nil
}

// defaults returns the defaults that the element gives, with classes up to the given one.
func (g elementAttributes) defaults(mostClass int) (d defaults, err error) {
	if d.frequency, err = g.scaled("frequency", MaxFrequency); err != nil {
		return d, err
	}
	if d.rate, err = g.scaled("datarate", MaxRate); err != nil {
		return d, err
	}
	if d.power, err = g.decimal("power"); err != nil {
		return d, err
	}
	if _, ok := g.values["class"]; ok {
		class, err := g.number("class", 0, mostClass)
		if err != nil {
			return d, err
		}
		d.class = &class
	}
	return d, nil
}

// scaled reads a whole number above 0 with EMANE's suffixes K, M and G, such as 2.4G; nil if absent.
func (g elementAttributes) scaled(name string, most uint64) (*uint64, error) {
	text, ok := g.values[name]
	if !ok {
		return nil, nil
	}
	n, ok := scale(text)
	if !ok || n == 0 || n > most {
		return nil, g.invalid(name, fmt.Sprintf("a whole number from 1 to %d, or one such as 2.4G with K, M or G", most))
	}
	return &n, nil
}

func scale(text string) (uint64, bool) {
	zeros := 0
	if text != "" {
		if at := strings.IndexByte("KMG", text[len(text)-1]); at >= 0 {
			zeros, text = 3*(at+1), text[:len(text)-1]
		}
	}
	whole, fraction, point := strings.Cut(text, ".")
	if whole == "" || point && fraction == "" {
		return 0, false
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > zeros || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", zeros-len(fraction)), 10, 64)
	return n, err == nil
}

func (g elementAttributes) decimal(name string) (*float64, error) {
	text, ok := g.values[name]
	if !ok {
		return nil, nil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "+-.0123456789") != "" || math.Abs(value) > maxPowerDBm {
		return nil, g.invalid(name, fmt.Sprintf("a number from %d to %d, dBm", -maxPowerDBm, maxPowerDBm))
	}
	return &value, nil
}

// maxPowerDBm in dBm, far beyond any transmitter.
const maxPowerDBm = 300
