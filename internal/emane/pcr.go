package emane

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Curves for a network without one, because EMANE requires a curve: signals at least as strong as the noise are received. EMANE's
// curves have steps of 0.01 dB.
const (
	stepCurveRFPipe = `<pcr><table pktsize="0"><row sinr="-0.01" por="0"/><row sinr="0" por="100"/></table></pcr>`
	stepCurveTDMA   = `<tdmabasemodel-pcr packetsize="0"><datarate bps="1M"><entry sinr="-0.01" por="0"/><entry sinr="0" por="100"/></datarate></tdmabasemodel-pcr>`
	// A transponder names its curve by the index, and receives everything above the sensitivity.
	stepCurveBentPipe = `<bentpipe-model-pcr packetsize="0"><curve index="1"><entry sinr="-255" por="0"/><entry sinr="-254" por="100"/></curve></bentpipe-model-pcr>`
)

// The names of PCR files' root elements.
const (
	rfpipeRoot = "pcr"
	tdmaRoot   = "tdmabasemodel-pcr"
)

// pcr returns the file of the packet completion rate curve. RF Pipe's needs a document type; TDMA's must not
// have one.
func (p *Process) pcr(w *v1alpha1.WaveformSpec) ([]byte, error) {
	if w.EMANE != nil && w.RFPipe == nil && w.TDMA == nil {
		return p.modelPCR(w.EMANE)
	}
	text, want, fieldName := stepCurveTDMA, tdmaRoot, "waveform.tdma.pcr"
	given := ""
	if w.TDMA != nil {
		given = w.TDMA.PCR
	} else {
		text, want, fieldName, given = stepCurveRFPipe, rfpipeRoot, "waveform.rfpipe.pcr", w.RFPipe.PCR
	}
	if given != "" {
		curve, err := phy.ParsePCR([]byte(given))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fieldName, err)
		}
		text = given
		switch _, root, _ := onlyElements(given); { // it is valid, because it was parsed above
		case w.TDMA != nil && root != want:
			text = curve.TDMA()
		case w.TDMA == nil && (root != want || len(curve.RatesBitsPerSecond()) > 0):
			text = curve.RFPipe(w.RFPipe.Rate.BitsPerSecond())
		}
	}
	return p.curve(text, fieldName, "rfpipepcr")
}

// modelPCR is the curve of a model in place of RF Pipe and TDMA; nil for those without one.
func (p *Process) modelPCR(e *v1alpha1.EMANESettings) ([]byte, error) {
	switch e.Model {
	case v1alpha1.EMANEWiFi:
		return p.wifiPCR(e.PCR)
	case v1alpha1.EMANEBentPipe:
		return p.bentPipePCR(e.PCR)
	default:
		return nil, nil
	}
}

const modelPCRField = "waveform.emane.pcr"

func (p *Process) bentPipePCR(text string) ([]byte, error) {
	text = cmp.Or(text, stepCurveBentPipe)
	if err := phy.CheckBentPipePCR([]byte(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", modelPCRField, err)
	}
	return p.curve(text, modelPCRField, "")
}

func (p *Process) wifiPCR(text string) ([]byte, error) {
	if text == "" {
		return p.curve(stepCurveWiFi(), modelPCRField, "ieee80211pcr")
	}
	curve, err := phy.ParsePCR([]byte(text))
	if err == nil && (len(curve.RatesBitsPerSecond()) == 0 || !strings.Contains(text, "index=")) {
		err = errors.New("want a file of EMANE's 802.11 model, with curves by the index of their rates")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", modelPCRField, err)
	}
	return p.curve(text, modelPCRField, "ieee80211pcr")
}

// curve is a curve's file. definition is the document type of those whose root element is pcr.
func (p *Process) curve(text, fieldName, definition string) ([]byte, error) {
	elements, root, err := onlyElements(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fieldName, err)
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	if root == rfpipeRoot {
		b.WriteString(p.doctype(rfpipeRoot, definition) + "\n")
	}
	b.Write(elements)
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// onlyElements keeps only the elements of a document, whose DOCTYPE may name another installation.
func onlyElements(text string) (elements []byte, root string, err error) {
	var b bytes.Buffer
	in, out := xml.NewDecoder(bytes.NewReader([]byte(text))), xml.NewEncoder(&b)
	in.CharsetReader = phy.IgnoreEncoding
	out.Indent("", "  ")
	for {
		token, err := in.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, "", err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if root == "" {
				root = t.Name.Local
			}
			err = out.EncodeToken(t.Copy())
		case xml.EndElement:
			err = out.EncodeToken(t)
		}
		if err != nil {
			return nil, "", err
		}
	}
	err = out.Close()
	return b.Bytes(), root, err
}
