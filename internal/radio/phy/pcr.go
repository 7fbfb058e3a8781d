package phy

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The kinds of PCR files, by their root elements. Files of the IEEE 802.11abg model have RF Pipe's, with
// datarate elements in the table.
const (
	rfPipeRoot   = "pcr"
	tdmaRoot     = "tdmabasemodel-pcr"
	bentPipeRoot = "bentpipe-model-pcr"
)

// wifiRates in bit/s by the index of a datarate in a file of the IEEE 802.11abg model, counted from 1.
var wifiRates = [...]float64{1e6, 2e6, 5.5e6, 11e6, 6e6, 9e6, 12e6, 18e6, 24e6, 36e6, 48e6, 54e6}

// maxSINRDB is the largest absolute SINR of a row that EMANE accepts.
const maxSINRDB = 255

// ParsePCR reads the text of an EMANE PCR file: of RF Pipe or IEEE 802.11abg (root element pcr), TDMA
// (tdmabasemodel-pcr) or Bent Pipe (bentpipe-model-pcr). A Bent Pipe file must have one curve only.
func ParsePCR(text []byte) (*Curve, error) {
	return (&pcrParser{}).parse(text)
}

// CurveOf is ParsePCR for a text that may be empty, which is no curve.
func CurveOf(text string) (*Curve, error) {
	if text == "" {
		return nil, nil
	}
	return ParsePCR([]byte(text))
}

// CheckBentPipePCR returns what is wrong with a Bent Pipe PCR file, whose transponders name their curves by an index.
func CheckBentPipePCR(text []byte) error {
	p := &pcrParser{indexes: map[float64]bool{}}
	if _, err := p.parse(text); err != nil {
		return err
	}
	if len(p.indexes) == 0 {
		return fmt.Errorf("pcr: want a file of EMANE's Bent Pipe model, whose root element is %s", bentPipeRoot)
	}
	return nil
}

func (p *pcrParser) parse(text []byte) (*Curve, error) {
	p.decoder = xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	p.decoder.CharsetReader = IgnoreEncoding
	for {
		token, err := p.decoder.Token()
		if err == io.EOF {
			return p.finish()
		}
		if err == nil {
			err = p.token(token)
		}
		if err != nil {
			line, _ := p.decoder.InputPos()
			return nil, fmt.Errorf("pcr: line %d: %w", line, ExplainXML(err))
		}
	}
}

// ExplainXML says why a text is not XML; another error stays as it is.
func ExplainXML(err error) error {
	syntax, ok := errors.AsType[*xml.SyntaxError](err)
	switch {
	case !ok && strings.Contains(err.Error(), "unsupported version"):
		return errors.New("the text is of another version of XML: want version=\"1.0\" in its first line")
	case !ok:
		return err
	case syntax.Msg == "unexpected EOF":
		return errors.New("the text ends too early")
	}
	return errors.New("the text is not well-formed XML: " + syntax.Msg)
}

// IgnoreEncoding is the CharsetReader for XML in a manifest, which is in UTF-8 whatever the XML declares.
func IgnoreEncoding(_ string, text io.Reader) (io.Reader, error) { return text, nil }

// pcrParser follows the elements of a PCR file.
type pcrParser struct {
	decoder *xml.Decoder
	path    []string // open elements
	curve   Curve
	seen    bool
	// indexes of Bent Pipe's curves; nil where there may be one only.
	indexes map[float64]bool
}

func (p *pcrParser) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		p.path = append(p.path, t.Name.Local)
		return p.element(strings.Join(p.path, "/"), t)
	case xml.EndElement:
		p.path = p.path[:len(p.path)-1]
	case xml.CharData:
		if text := strings.TrimSpace(string(t)); text != "" {
			return fmt.Errorf("text %.20q: want elements only", text)
		}
	}
	return nil
}

func (p *pcrParser) element(path string, e xml.StartElement) error {
	switch path {
	case rfPipeRoot:
		return p.begin()
	case tdmaRoot, bentPipeRoot:
		if err := p.begin(); err != nil {
			return err
		}
		return p.size(e, "packetsize", math.MaxUint16)
	case rfPipeRoot + "/table":
		if len(p.curve.rates) > 0 {
			return errors.New("second table: want one")
		}
		p.curve.rates = append(p.curve.rates, rateCurve{})
		return p.size(e, "pktsize", math.MaxUint32)
	case tdmaRoot + "/datarate":
		return p.rate(e)
	case rfPipeRoot + "/table/datarate":
		return p.wifiRate(e)
	case bentPipeRoot + "/curve":
		return p.bentPipe(e)
	case rfPipeRoot + "/table/row":
		if p.curve.rates[0].bitsPerSecond > 0 {
			return errors.New("row beside a datarate: want it within one")
		}
		return p.row(e)
	case tdmaRoot + "/datarate/entry", bentPipeRoot + "/curve/entry", rfPipeRoot + "/table/datarate/row":
		return p.row(e)
	default:
		return fmt.Errorf("element %s: want %s with table and row (or datarate and row), %s with datarate and entry, or %s with curve and entry", path, rfPipeRoot, tdmaRoot, bentPipeRoot)
	}
}

// wifiRate begins the curve of a rate of IEEE 802.11abg.
func (p *pcrParser) wifiRate(e xml.StartElement) error {
	index, err := number(e, "index", 1, float64(len(wifiRates)))
	if err != nil {
		return err
	}
	if index != math.Trunc(index) {
		return fmt.Errorf("index of datarate: %v, want a whole number from 1 (1 Mbit/s) to %d (54 Mbit/s)", index, len(wifiRates))
	}
	switch table := p.curve.rates[0]; { // made by the table element, for rows without a rate
	case table.bitsPerSecond == 0 && len(table.points) > 0:
		return errors.New("datarate beside rows of the table: want all rows within one")
	case table.bitsPerSecond == 0:
		p.curve.rates = nil
	}
	return p.addRate(wifiRates[int(index)-1])
}

// bentPipe begins a curve of a Bent Pipe file. A transponder selects one of several, and only EMANE's model has transponders.
func (p *pcrParser) bentPipe(e xml.StartElement) error {
	index, err := number(e, "index", 0, math.MaxUint16)
	if err != nil {
		return err
	}
	if p.indexes[index] {
		return fmt.Errorf("second curve of index %v: want another index", index)
	}
	if p.indexes != nil {
		p.indexes[index] = true
	} else if len(p.curve.rates) > 0 {
		return fmt.Errorf("second curve, of index %v: a network's radios have one: leave that of their transponders' transmit.pcrcurveindex", index)
	}
	p.curve.rates = append(p.curve.rates, rateCurve{})
	return nil
}

func (p *pcrParser) begin() error {
	if p.seen {
		return errors.New("second root element")
	}
	p.seen = true
	return nil
}

// size that the curve is for.
func (p *pcrParser) size(e xml.StartElement, name string, most float64) (err error) {
	p.curve.sizeBytes, err = number(e, name, 0, most)
	if err == nil && p.curve.sizeBytes != math.Trunc(p.curve.sizeBytes) {
		err = fmt.Errorf("%s of %s: %v, want whole bytes", name, e.Name.Local, p.curve.sizeBytes)
	}
	return err
}

func (p *pcrParser) rate(e xml.StartElement) error {
	rate, err := number(e, "bps", 1, 1e15)
	if err != nil {
		return err
	}
	return p.addRate(rate)
}

func (p *pcrParser) addRate(rate float64) error {
	for _, r := range p.curve.rates {
		if r.bitsPerSecond == rate {
			return fmt.Errorf("datarate: second curve for %v bit/s", rate)
		}
	}
	p.curve.rates = append(p.curve.rates, rateCurve{bitsPerSecond: rate})
	return nil
}

func (p *pcrParser) row(e xml.StartElement) error {
	sinr, err := number(e, "sinr", -maxSINRDB, maxSINRDB)
	if err != nil {
		return err
	}
	percent, err := number(e, "por", 0, 100)
	if err != nil {
		return err
	}
	r := &p.curve.rates[len(p.curve.rates)-1]
	if n := len(r.points); len(p.path) == 3 && p.path[0] == rfPipeRoot && n > 0 && sinr <= r.points[n-1].sinrDB {
		return fmt.Errorf("sinr of row: %v after %v, want ascending values", sinr, r.points[n-1].sinrDB)
	}
	r.points = append(r.points, point{sinr, percent / 100})
	return nil
}

func (p *pcrParser) finish() (*Curve, error) {
	if len(p.curve.rates) == 0 {
		return nil, errors.New("pcr: no curve: want a table or a datarate with at least one point")
	}
	for _, r := range p.curve.rates {
		if len(r.points) == 0 {
			return nil, errors.New("pcr: curve without points: want at least one row or entry")
		}
		slices.SortFunc(r.points, func(a, b point) int { return cmp.Compare(a.sinrDB, b.sinrDB) })
		for i := range r.points[1:] {
			if r.points[i].sinrDB == r.points[i+1].sinrDB {
				return nil, fmt.Errorf("pcr: sinr %v: given twice", r.points[i].sinrDB)
			}
		}
	}
	return &p.curve, nil
}

// number returns an attribute's number in EMANE's notation: decimal, with the suffix K, M or G.
func number(e xml.StartElement, name string, least, most float64) (float64, error) {
	i := slices.IndexFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == name })
	if i < 0 {
		return 0, fmt.Errorf("%s of %s: missing", name, e.Name.Local)
	}
	text, factor := strings.TrimSpace(e.Attr[i].Value), 1.0
	for suffix, f := range map[string]float64{"K": 1e3, "M": 1e6, "G": 1e9} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			text, factor = digits, f
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if v *= factor; err != nil || !(v >= least && v <= most) || strings.ContainsAny(text, "xX_") {
		return 0, fmt.Errorf("%s of %s: %q, want a number from %.0f to %.0f", name, e.Name.Local, e.Attr[i].Value, least, most)
	}
	return v, nil
}

// RFPipe returns a rate's curve as the text of an RF Pipe PCR file.
func (c *Curve) RFPipe(rateBitsPerSecond float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<pcr><table pktsize="%.0f">`, c.sizeBytes)
	c.forRate(rateBitsPerSecond).write(&b, "row")
	b.WriteString("</table></pcr>")
	return b.String()
}

// TDMA returns the curve as the text of a TDMA PCR file.
func (c *Curve) TDMA() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<tdmabasemodel-pcr packetsize="%.0f">`, min(c.sizeBytes, math.MaxUint16))
	for i := range c.rates {
		rate := cmp.Or(c.rates[i].bitsPerSecond, 1e6) // the first also holds for all other rates
		fmt.Fprintf(&b, `<datarate bps="%.0f">`, rate)
		c.rates[i].write(&b, "entry")
		b.WriteString("</datarate>")
	}
	b.WriteString("</tdmabasemodel-pcr>")
	return b.String()
}

// write writes the points as elements. EMANE takes two decimals.
func (r *rateCurve) write(b *strings.Builder, element string) {
	for _, p := range r.points {
		fmt.Fprintf(b, `<%s sinr="%.2f" por="%.2f"/>`, element, p.sinrDB, 100*p.completion)
	}
}
