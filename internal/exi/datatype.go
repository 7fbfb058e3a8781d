package exi

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// representation is how values of a datatype are encoded (EXI 1.0, section 7.1).
type representation uint8

const (
	textValue representation = iota
	enumerationValue
	decimalValue
	integerValue
	unsignedValue
	boundedValue
	booleanValue
)

// datatype is a simple type.
type datatype struct {
	representation representation
	// characters that text is restricted to, in order; none for all.
	characters []rune
	// enumeration has the values in the schema's order.
	enumeration []string
	// min and max of integers.
	min, max int64
}

// builtIn types of XML schema, of which some have others derived from them.
var builtIns = map[string]struct {
	datatype datatype
	derived  bool
}{
	"string":             {datatype{representation: textValue}, true},
	"boolean":            {datatype{representation: booleanValue}, false},
	"decimal":            {datatype{representation: decimalValue}, true},
	"integer":            {integers(math.MinInt64, math.MaxInt64), true},
	"long":               {integers(math.MinInt64, math.MaxInt64), true},
	"int":                {integers(math.MinInt32, math.MaxInt32), true},
	"short":              {integers(math.MinInt16, math.MaxInt16), true},
	"byte":               {integers(math.MinInt8, math.MaxInt8), false},
	"nonNegativeInteger": {integers(0, math.MaxInt64), true},
	"positiveInteger":    {integers(1, math.MaxInt64), false},
	"unsignedLong":       {integers(0, math.MaxInt64), true},
	"unsignedInt":        {integers(0, math.MaxUint32), true},
	"unsignedShort":      {integers(0, math.MaxUint16), true},
	"unsignedByte":       {integers(0, math.MaxUint8), false},
}

// maxBounded is the largest number of integers that take a fixed number of bits.
const maxBounded = 4096

// integers returns the datatype of those in a range.
func integers(from, to int64) datatype {
	d := datatype{min: from, max: to}
	switch {
	case uint64(to)-uint64(from) < maxBounded:
		d.representation = boundedValue
	case from >= 0:
		d.representation = unsignedValue
	default:
		d.representation = integerValue
	}
	return d
}

func (d *datatype) isInteger() bool {
	return d.representation == integerValue || d.representation == unsignedValue || d.representation == boundedValue
}

// restriction reads a simple type.
func (r *schemaReader) restriction(n *node, d *document) (*datatype, error) {
	if len(n.Children) != 1 || !n.Children[0].is("restriction") {
		return nil, fmt.Errorf("want a restriction")
	}
	restriction := &n.Children[0]
	base, err := r.typeOf(d.qname(restriction.attr("base")))
	if err != nil {
		return nil, err
	}
	if base.simple == nil {
		return nil, fmt.Errorf("base %s: want a simple type", restriction.attr("base"))
	}
	simple := *base.simple
	var patterns []string
	for i := range restriction.Children {
		c := &restriction.Children[i]
		if c.is("pattern") {
			patterns = append(patterns, c.attr("value"))
		} else if err := simple.facet(c, base.simple); err != nil {
			return nil, err
		}
	}
	return &simple, simple.restrict(patterns)
}

// facet takes a facet that is no pattern.
func (d *datatype) facet(n *node, base *datatype) error {
	value := n.attr("value")
	switch facet := n.XMLName.Local; facet {
	case "enumeration":
		if base.representation != textValue {
			return fmt.Errorf("enumeration %q: want a restriction of strings", value)
		}
		d.representation, d.enumeration = enumerationValue, append(d.enumeration, value)
	case "minInclusive", "maxInclusive":
		if !d.isInteger() {
			return nil
		}
		bound, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("%s %q: want an integer of 64 bits", facet, value)
		}
		if facet == "minInclusive" {
			*d = integers(bound, d.max)
		} else {
			*d = integers(d.min, bound)
		}
	case "length", "minLength", "maxLength", "totalDigits", "fractionDigits":
	default:
		return fmt.Errorf("%s is not supported", facet)
	}
	return nil
}

// restrict takes patterns, which restrict the characters of text.
func (d *datatype) restrict(patterns []string) error {
	switch {
	case len(patterns) == 0:
		return nil
	case d.representation == booleanValue || len(d.characters) > 0:
		return fmt.Errorf("pattern %q: want a restriction of numbers, or of strings without a pattern", patterns[0])
	case d.representation != textValue:
		return nil
	}
	characters, err := charactersOf(patterns)
	d.characters = characters
	return err
}

// errValue says that a value is none of a datatype.
func (d *datatype) errValue(owner name, value string) error {
	want := "a decimal of at most 18 digits on either side"
	switch {
	case d.representation == enumerationValue:
		want = "one of " + strings.Join(d.enumeration, ", ")
	case d.representation == booleanValue:
		want = "true or false"
	case d.isInteger():
		want = fmt.Sprintf("an integer from %d to %d", d.min, d.max)
	}
	return fmt.Errorf("%s %.40q: want %s", owner, value, want)
}

// encode writes a value of an element or attribute.
func (d *datatype) encode(w *bitWriter, v *values, owner name, value string) error {
	valid := true
	switch d.representation {
	case textValue:
		v.write(w, owner, value, func(s string, offset int) { d.writeText(w, s, offset) })
	case enumerationValue:
		code := slices.Index(d.enumeration, value)
		if valid = code >= 0; valid {
			w.code(code, len(d.enumeration))
		}
	case booleanValue:
		value = strings.Trim(value, whiteSpace)
		valid = value == "true" || value == "false" || value == "1" || value == "0"
		w.code(flag(value == "true" || value == "1"), 2)
	case decimalValue:
		valid = writeDecimal(w, strings.Trim(value, whiteSpace))
	default:
		number, err := strconv.ParseInt(strings.Trim(value, whiteSpace), 10, 64)
		if valid = err == nil && number >= d.min && number <= d.max; valid {
			d.writeInteger(w, number)
		}
	}
	if !valid {
		return d.errValue(owner, value)
	}
	return nil
}

const whiteSpace = " \t\r\n"

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// writeText writes the length and the characters; those beyond the restriction follow an escape.
func (d *datatype) writeText(w *bitWriter, s string, offset int) {
	if len(d.characters) == 0 {
		w.text(s, offset)
		return
	}
	all := len(d.characters)
	w.unsigned(uint64(len([]rune(s)) + offset))
	for _, r := range s {
		if code, found := slices.BinarySearch(d.characters, r); found {
			w.code(code, all+1)
		} else {
			w.code(all, all+1)
			w.unsigned(uint64(r))
		}
	}
}

func (d *datatype) readText(r *bitReader, length uint64) string {
	if len(d.characters) == 0 {
		return r.text(length)
	}
	all := len(d.characters)
	n := r.length(length, width(all+1))
	var out strings.Builder
	for range n {
		if code := r.code(all+1, "character"); code < all {
			r.character(&out, uint64(d.characters[code]))
		} else {
			r.character(&out, r.unsigned())
		}
	}
	return out.String()
}

// writeDecimal writes a sign, the digits before the point, and those after it in reverse; it reports whether the text is a decimal.
func writeDecimal(w *bitWriter, text string) bool {
	digits := strings.TrimPrefix(text, "+")
	negative := strings.HasPrefix(text, "-")
	if negative {
		digits = text[1:]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole+fraction == "" {
		return false
	}
	before, ok := parseDigits(whole)
	after, ok2 := parseDigits(reverse(fraction))
	if !ok || !ok2 {
		return false
	}
	w.code(flag(negative && before+after > 0), 2)
	w.unsigned(before)
	w.unsigned(after)
	return true
}

func parseDigits(digits string) (uint64, bool) {
	if digits == "" {
		return 0, true
	}
	number, err := strconv.ParseUint(digits, 10, 63)
	return number, err == nil
}

func reverse(digits string) string {
	out := []byte(digits)
	slices.Reverse(out)
	return string(out)
}

func readDecimal(r *bitReader) string {
	sign := ""
	if r.bits(1) == 1 {
		sign = "-"
	}
	before, after := r.unsigned(), r.unsigned()
	if before == 0 && after == 0 {
		sign = ""
	}
	return sign + strconv.FormatUint(before, 10) + "." + reverse(strconv.FormatUint(after, 10))
}

func (d *datatype) writeInteger(w *bitWriter, number int64) {
	switch {
	case d.representation == boundedValue:
		w.code(int(number-d.min), int(d.max-d.min)+1)
	case d.representation == unsignedValue:
		w.unsigned(uint64(number))
	case number < 0:
		w.bits(1, 1)
		w.unsigned(uint64(-(number + 1)))
	default:
		w.bits(0, 1)
		w.unsigned(uint64(number))
	}
}

func (d *datatype) readInteger(r *bitReader) string {
	var number int64
	switch d.representation {
	case boundedValue:
		number = d.min + int64(r.code(int(d.max-d.min)+1, "integer"))
	case unsignedValue:
		number = int64(r.unsigned())
	default:
		negative := r.bits(1) == 1
		if number = int64(r.unsigned()); negative {
			number = -number - 1
		}
	}
	if r.err == nil && (number < d.min || number > d.max) {
		r.fail("EXI stream has integer %d: want one from %d to %d", number, d.min, d.max)
	}
	return strconv.FormatInt(number, 10)
}

// decode reads a value of an element or attribute.
func (d *datatype) decode(r *bitReader, v *values, owner name) string {
	switch d.representation {
	case textValue:
		return v.read(r, owner, func(length uint64) string { return d.readText(r, length) })
	case enumerationValue:
		return d.enumeration[r.code(len(d.enumeration), "value")]
	case booleanValue:
		return strconv.FormatBool(r.bits(1) == 1)
	case decimalValue:
		return readDecimal(r)
	}
	return d.readInteger(r)
}
