package propagation

import (
	"math"
	"testing"
)

// Values of ITU-R Study Group 3 for the validation of ITU-R P.452, whose §4.2 is the diffraction of ITU-R
// P.526 §4.5.2. Flat land, antennas 10 m above it, vertical polarisation, time percentage 50 %. Spherical and
// total diffraction loss are equal there.
var flatLand = []struct {
	kilometres, effectiveRadiusKilometres float64
	points                                int
	gigahertz, lossDB                     float64
}{
	{5, 8738.167287, 501, 0.1, 20.02432081},
	{5, 8738.167287, 501, 0.25, 12.69951778},
	{5, 8738.167287, 501, 0.5, 7.30775532},
	{5, 8738.167287, 501, 0.75, 4.11082622},
	{5, 8738.167287, 501, 1, 1.75163653},
	{5, 8738.167287, 501, 2, 0},
	{5, 8738.167287, 501, 10, 0},
	{100, 8735.511968, 101, 0.1, 67.30014953},
	{100, 8735.511968, 101, 0.25, 70.36696319},
	{100, 8735.511968, 101, 0.5, 76.11124705},
	{100, 8735.511968, 101, 1, 85.58724637},
	{100, 8735.511968, 101, 2, 99.60559847},
	{100, 8735.511968, 101, 5, 126.50485015},
	{100, 8735.511968, 101, 10, 154.17401718},
	{100, 8735.511968, 101, 50, 253.50188255},
}

func TestDiffractionOverFlatLandIsThatOfTheITUsValidationExamples(t *testing.T) {
	for _, c := range flatLand {
		p := Path{Metres: c.kilometres * 1000, Ground: make([]float64, c.points), Transmitter: 10, Receiver: 10,
			FrequencyHertz: c.gigahertz * 1e9, EffectiveRadiusMetres: c.effectiveRadiusKilometres * 1000}
		// The examples use a rounded speed of light.
		if got := p.DiffractionLoss(); math.Abs(got-c.lossDB) > 0.0005 {
			t.Errorf("%g km at %g GHz: got %.4f dB; want %.4f", c.kilometres, c.gigahertz, got, c.lossDB)
		}
	}
}
