package propagation

import "math"

// Electrical constants of land: relative permittivity and conductivity in S/m (ITU-R P.526, P.527).
const (
	landPermittivity = 22
	landConductivity = 0.003
)

// sphericalLoss of a smooth Earth, in dB beside free space, of antennas at the path's heights above it: ITU-R P.526-15 §3.2.
func sphericalLoss(p *Path) float64 {
	d, radius, h1, h2 := p.Metres, p.radius(), p.Transmitter, p.Receiver
	horizon := math.Sqrt(2*radius) * (math.Sqrt(h1) + math.Sqrt(h2))
	if d >= horizon {
		return firstTermLoss(p, radius)
	}
	clearance, required := p.sphericalClearance()
	if clearance > required {
		return 0
	}
	// The radius at which the path would just graze the Earth.
	grazing := d / (math.Sqrt(h1) + math.Sqrt(h2))
	loss := firstTermLoss(p, grazing*grazing/2)
	if loss < 0 {
		return 0
	}
	if required == 0 { // an antenna on the ground, which the ray touches there
		return loss
	}
	return (1 - clearance/required) * loss
}

// sphericalClearance is the smallest height of the ray over the smooth Earth, and the height above which
// nothing diffracts.
func (p *Path) sphericalClearance() (metres, required float64) {
	d, radius, h1, h2 := p.Metres, p.radius(), p.Transmitter, p.Receiver
	c := (h1 - h2) / (h1 + h2)
	m := d * d / (4 * radius * (h1 + h2))
	b := 2 * math.Sqrt((m+1)/(3*m)) * math.Cos(math.Pi/3+math.Acos(min(max(3*c/2*math.Sqrt(3*m/((m+1)*(m+1)*(m+1))), -1), 1))/3)
	near := min(max(d/2*(1+b), 0), d)
	far := d - near
	metres = ((h1-near*near/(2*radius))*far + (h2-far*far/(2*radius))*near) / d
	return metres, 17.456 / math.Sqrt(1000) * math.Sqrt(near*far*p.wavelength()/d)
}

// firstTermLoss of the residue series, over an Earth of the given effective radius: ITU-R P.526-15 §3.1.1.
func firstTermLoss(p *Path, radius float64) float64 {
	megahertz, kilometres := p.FrequencyHertz/1e6, radius/1000
	gigahertz := megahertz / 1000
	lossTangent := 18 * landConductivity / gigahertz
	k := 0.036 * math.Pow(kilometres*gigahertz, -1.0/3) *
		math.Pow((landPermittivity-1)*(landPermittivity-1)+lossTangent*lossTangent, -0.25)
	k *= math.Sqrt(landPermittivity*landPermittivity + lossTangent*lossTangent) // vertical polarisation
	square := k * k
	beta := (1 + 1.6*square + 0.67*square*square) / (1 + 4.5*square + 1.53*square*square)
	x := 21.88 * beta * math.Cbrt(gigahertz/(kilometres*kilometres)) * p.Metres / 1000
	y := 0.9575 * beta * math.Cbrt(gigahertz*gigahertz/kilometres)
	return -distanceTerm(x) - heightGain(beta*y*p.Transmitter, k) - heightGain(beta*y*p.Receiver, k)
}

func distanceTerm(x float64) float64 {
	if x >= 1.6 {
		return 11 + 10*math.Log10(x) - 17.6*x
	}
	return -20*math.Log10(x) - 5.6488*math.Pow(x, 1.425)
}

func heightGain(b, k float64) float64 {
	gain := 20 * math.Log10(b+0.1*b*b*b)
	if b > 2 {
		gain = 17.6*math.Sqrt(b-1.1) - 5*math.Log10(b-1.1) - 8
	}
	return max(gain, 2+20*math.Log10(k))
}
