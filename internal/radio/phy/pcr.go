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

// The two kinds of PCR files, by their root elements.
const (
	rfPipeRoot = "pcr"
	tdmaRoot   = "tdmabasemodel-pcr"
)

// maxSINRDB is the largest absolute value that EMANE takes for a row's SINR.
const maxSINRDB = 255

// ParsePCR reads the text of an EMANE RF Pipe PCR file (root element pcr) or TDMA PCR file (tdmabasemodel-pcr).
func ParsePCR(text []byte) (*Curve, error) {
	p := &pcrParser{decoder: xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))}
	p.decoder.CharsetReader = asItIs
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
			return nil, fmt.Errorf("pcr: line %d: %w", line, err)
		}
	}
}

// asItIs is the text whatever encoding it declares: it comes out of a manifest, which is in UTF-8.
func asItIs(_ string, text io.Reader) (io.Reader, error) { return text, nil }

// pcrParser follows the elements of a PCR file.
type pcrParser struct {
	decoder *xml.Decoder
	path    []string // open elements
	curve   Curve
	seen    bool
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
	case tdmaRoot:
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
	case rfPipeRoot + "/table/row", tdmaRoot + "/datarate/entry":
		return p.row(e)
	default:
		return fmt.Errorf("element %s: want %s with table and row, or %s with datarate and entry", path, rfPipeRoot, tdmaRoot)
	}
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
	for _, r := range p.curve.rates {
		if r.bitsPerSecond == rate {
			return fmt.Errorf("bps of datarate: second curve for %v bit/s", rate)
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
	if n := len(r.points); p.path[0] == rfPipeRoot && n > 0 && sinr <= r.points[n-1].sinrDB {
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

// number that an attribute has, in EMANE's notation: decimal, with the suffix K, M or G.
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
		return 0, fmt.Errorf("%s of %s: %q, want a number from %v to %v", name, e.Name.Local, e.Attr[i].Value, least, most)
	}
	return v, nil
}
