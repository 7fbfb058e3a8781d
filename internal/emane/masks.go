package emane

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Masks is the name of the file with a network's spectral masks.
const Masks = "spectralmasks.xml"

// maskParts are the elements of a spectral mask manifest, by the element that they are in, with their attributes.
var maskParts = map[[2]string][]string{
	{"", "spectral-mask-manifest"}:     nil,
	{"spectral-mask-manifest", "mask"}: {"id"},
	{"mask", "primary"}:                nil,
	{"mask", "spurs"}:                  nil,
	{"spurs", "spur"}:                  {"offset_from_center_hz"},
	{"primary", "width"}:               {"hz", "dBr"},
	{"spur", "width"}:                  {"hz", "dBr"},
}

// masksOf are the ids of a manifest's masks, none for an empty text. Errors name the line.
func masksOf(text string) (ids []string, err error) {
	if text == "" {
		return nil, nil
	}
	in := xml.NewDecoder(strings.NewReader(text))
	in.CharsetReader = phy.IgnoreEncoding
	r := maskReader{parts: []map[string]int{{}}, within: []string{""}}
	for err == nil {
		var token xml.Token
		if token, err = in.Token(); err != nil {
			break
		}
		switch t := token.(type) {
		case xml.StartElement:
			err = r.begin(t)
		case xml.EndElement:
			err = r.end(t.Name.Local)
		}
	}
	line, _ := in.InputPos()
	var malformed *xml.SyntaxError
	switch {
	case errors.As(err, &malformed):
		return nil, fmt.Errorf("line %d is not well-formed XML: want a spectral mask manifest of EMANE's", line)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("line %d: %w", line, err)
	case len(r.ids) == 0:
		return nil, errors.New(`it has no masks: want <spectral-mask-manifest><mask id="1"><primary><width hz="1M" dBr="0"/></primary></mask></spectral-mask-manifest>`)
	}
	return r.ids, nil
}

// maskReader checks a manifest element by element. It has the open elements, and counts the parts of each.
type maskReader struct {
	ids    []string
	within []string
	parts  []map[string]int
}

func (r *maskReader) begin(start xml.StartElement) error {
	name, parent, before := start.Name.Local, r.within[len(r.within)-1], r.parts[len(r.parts)-1]
	attributes, known := maskParts[[2]string{parent, name}]
	switch {
	case !known && parent == "":
		return fmt.Errorf("the root element is %s: want spectral-mask-manifest", name)
	case !known:
		return fmt.Errorf("%s in %s is not known", name, parent)
	case (name == "primary" || name == "spurs") && before[name] > 0:
		return fmt.Errorf("mask %s has a second %s: want one", r.ids[len(r.ids)-1], name)
	case name == "primary" && before["spurs"] > 0:
		return fmt.Errorf("mask %s has its primary after its spurs: want it before", r.ids[len(r.ids)-1])
	}
	before[name]++
	r.within, r.parts = append(r.within, name), append(r.parts, map[string]int{})
	for _, a := range start.Attr {
		if !slices.Contains(attributes, a.Name.Local) {
			return fmt.Errorf("%s has the attribute %s, which is not known", name, a.Name.Local)
		}
	}
	for _, attribute := range attributes {
		i := slices.IndexFunc(start.Attr, func(a xml.Attr) bool { return a.Name.Local == attribute })
		if i < 0 {
			return fmt.Errorf("%s has no %s", name, attribute)
		}
		if err := r.value(attribute, strings.TrimSpace(start.Attr[i].Value)); err != nil {
			return err
		}
	}
	return nil
}

// value checks an attribute's value.
func (r *maskReader) value(attribute, value string) error {
	switch attribute {
	case "id":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > math.MaxUint16 || strconv.Itoa(n) != value {
			return fmt.Errorf("mask %q: want an id from 1 to %d", value, math.MaxUint16)
		}
		if slices.Contains(r.ids, value) {
			return fmt.Errorf("mask %s is there twice: want an id of its own for each", value)
		}
		r.ids = append(r.ids, value)
	case "hz":
		if hertz, ok := maskHertz(value); !ok || hertz < 1 {
			return fmt.Errorf("width %q: want whole hertz above 0, such as 500K or 1.5M", value)
		}
	case "offset_from_center_hz":
		if _, ok := maskHertz(strings.TrimLeft(value, "+-")); !ok {
			return fmt.Errorf("offset_from_center_hz %q: want whole hertz, such as -1.5M", value)
		}
	case "dBr":
		if level, err := strconv.ParseFloat(value, 64); err != nil || math.Abs(level) > maxMaskDB || !decimalForm.MatchString(value) {
			return fmt.Errorf("dBr %q: want decibels from -%d to %d, relative to the transmit power", value, maxMaskDB, maxMaskDB)
		}
	}
	return nil
}

// end checks that an element has the parts that it needs.
func (r *maskReader) end(name string) error {
	parts := r.parts[len(r.parts)-1]
	r.within, r.parts = r.within[:len(r.within)-1], r.parts[:len(r.parts)-1]
	switch {
	case name == "mask" && parts["primary"] == 0:
		return fmt.Errorf("mask %s has no primary", r.ids[len(r.ids)-1])
	case (name == "primary" || name == "spur") && parts["width"] == 0:
		return fmt.Errorf("a %s of mask %s has no width", name, r.ids[len(r.ids)-1])
	}
	return nil
}

// maxMaskDB and maxMaskHertz bound a mask's levels and frequencies.
const (
	maxMaskDB    = 300
	maxMaskHertz = 1e12
)

var (
	hertzForm   = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?[GMK]?$`) // with a zero before, EMANE reads octal numbers
	decimalForm = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$`)
)

// maskHertz reads a frequency as EMANE does; ok is false for parts of a hertz.
func maskHertz(text string) (hertz float64, ok bool) {
	if !hertzForm.MatchString(text) {
		return 0, false
	}
	factor := map[byte]float64{'G': 1e9, 'M': 1e6, 'K': 1e3}[text[len(text)-1]]
	if factor == 0 {
		factor = 1
	}
	number, err := strconv.ParseFloat(strings.TrimRight(text, "GMK"), 64)
	hertz = math.Round(number*factor*1e3) / 1e3 // 2.4G is whole
	return hertz, err == nil && hertz == math.Trunc(hertz) && hertz <= maxMaskHertz
}

func hasMasks(w *v1alpha1.WaveformSpec) bool { return w.EMANE != nil && w.EMANE.SpectralMasks != "" }

// maskFile is the file of a network's spectral masks. EMANE has no document type for it.
func maskFile(text string) (File, error) {
	elements, _, err := onlyElements(text)
	return File{Name: Masks, Text: slices.Concat([]byte(xml.Header), elements, []byte("\n")), Shared: true}, err
}

// maskIndexes are the masks that a parameter names. An antenna of a bent pipe has its mask at the end.
func maskIndexes(m *model, raw *v1alpha1.EMANEParameter) (indexes []string) {
	switch {
	case raw.Layer == v1alpha1.EMANELayerPHY && raw.Name == "spectralmaskindex":
		return raw.Values
	case m.transponders && raw.Layer == m.layer && raw.Name == "antenna.defines":
		for _, value := range raw.Values {
			indexes = append(indexes, value[strings.LastIndexByte(value, ';')+1:])
		}
	}
	return indexes
}

// checkMaskIndexes finds masks that the settings do not have. A receiver would hear nothing of their senders.
func checkMaskIndexes(m *model, raw *v1alpha1.EMANEParameter, masks []string, path *field.Path) (errs field.ErrorList) {
	for _, index := range maskIndexes(m, raw) {
		if index != "0" && !slices.Contains(masks, index) {
			has := "no masks"
			if len(masks) > 0 {
				has = "the masks " + strings.Join(masks, ", ")
			}
			errs = append(errs, field.Invalid(path, index, "spectralMasks has "+has+": want the id of one, or 0 for power spread evenly over the bandwidth"))
		}
	}
	return errs
}
