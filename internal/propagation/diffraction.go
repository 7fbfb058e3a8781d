package propagation

import (
	"math"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/terrain"
)

// DefaultEffectiveRadiusMetres of the Earth: 4/3 of the real one, for the median atmosphere (ITU-R P.526).
const DefaultEffectiveRadiusMetres = 8.5e6

// stepMetres between the points of a terrain profile.
const stepMetres = 100

// maxProfile is the number of points of a profile above which its step grows.
const maxProfile = 256

// minProfile is the number of points of even a short profile.
const minProfile = 5

// Diffraction is free space and the diffraction by terrain: ITU-R P.526-15 §4.5.2, the Bullington construction of §4.5.1
// complemented with the diffraction over a smooth Earth of §3.2.
type Diffraction struct {
	// Terrain of the profile; nil is the sea.
	Terrain terrain.Surface
	// EffectiveRadiusMetres of the Earth; zero is DefaultEffectiveRadiusMetres.
	EffectiveRadiusMetres float64
}

// Pathloss in dB; NaN if the terrain is not known. An antenna below the ground counts as lying on it.
func (m Diffraction) Pathloss(from, to geo.Position, frequencyHertz float64) float64 {
	ground := m.Terrain
	if ground == nil {
		ground = terrain.Flat(0)
	}
	metres := groundMetres(from, to)
	free := FreeSpaceLoss(geo.Distance(from, to), frequencyHertz)
	if metres < 1 {
		return free
	}
	var buffer [maxProfile]float64
	heights := buffer[:min(max(int(metres/stepMetres)+2, minProfile), maxProfile)]
	if !terrain.Profile(ground, terrain.Place{Latitude: from.Latitude, Longitude: from.Longitude},
		terrain.Place{Latitude: to.Latitude, Longitude: to.Longitude}, heights) {
		return math.NaN()
	}
	p := Path{Metres: metres, Ground: heights, Transmitter: max(from.Altitude, heights[0]),
		Receiver: max(to.Altitude, heights[len(heights)-1]), FrequencyHertz: frequencyHertz,
		EffectiveRadiusMetres: m.EffectiveRadiusMetres}
	return free + p.DiffractionLoss()
}

// groundMetres is the distance along the ground, computed from the chord. It is within 1 mm of the
// ellipsoid's geodesic up to 100 km, at a tenth of its cost.
func groundMetres(from, to geo.Position) float64 {
	from.Altitude, to.Altitude = 0, 0
	return 2 * geo.MeanRadius * math.Asin(min(1, geo.Distance(from, to)/(2*geo.MeanRadius)))
}

// Path from one antenna to another over the ground, in the terms of ITU-R P.526.
type Path struct {
	// Metres along the ground.
	Metres float64
	// Ground above sea level in metres at equally spaced points, with both ends; at least three.
	Ground []float64
	// Transmitter and Receiver are the antennas' heights above sea level in metres, at or above the ground.
	Transmitter, Receiver float64
	FrequencyHertz        float64
	// EffectiveRadiusMetres of the Earth; zero is DefaultEffectiveRadiusMetres.
	EffectiveRadiusMetres float64
}

func (p *Path) radius() float64 {
	if p.EffectiveRadiusMetres == 0 {
		return DefaultEffectiveRadiusMetres
	}
	return p.EffectiveRadiusMetres
}

func (p *Path) wavelength() float64 { return SpeedOfLight / p.FrequencyHertz }

// KnifeEdgeLoss is the loss J(ν) in dB of a single knife edge: ITU-R P.526-15 equation (31), zero below ν = -0.78.
func KnifeEdgeLoss(nu float64) float64 {
	if nu <= -0.78 {
		return 0
	}
	return 6.9 + 20*math.Log10(math.Hypot(nu-0.1, 1)+nu-0.1)
}

// DiffractionLoss beside that of free space in dB: ITU-R P.526-15 §4.5.2.
func (p *Path) DiffractionLoss() float64 {
	seen := p.viewOf(1)
	transmitter, receiver := p.smoothHeights(&seen)
	smooth := *p
	smooth.Transmitter, smooth.Receiver = p.Transmitter-transmitter, p.Receiver-receiver
	spherical := sphericalLoss(&smooth)
	if spherical > 0 {
		flat := smooth.viewOf(0)
		spherical = max(0, spherical-smooth.bullington(&flat, 0))
	}
	return p.bullington(&seen, 1) + spherical
}

// view of the ground from the two antennas. Slopes are in metres per metre along the ground.
type view struct {
	// fromTransmitter and fromReceiver are the steepest slopes from an antenna to the ground, with the Earth's curvature.
	fromTransmitter, fromReceiver float64
	// obstacle is the largest height of the ground above the straight line between the antennas, without the
	// curvature. The obstacle's slopes are the steepest of such heights over the distance to either end.
	obstacle, obstacleTransmitter, obstacleReceiver float64
}

// viewOf returns the view with the ground multiplied by factor: 1, or 0 for sea level.
func (p *Path) viewOf(factor float64) view {
	d, last := p.Metres, len(p.Ground)-1
	step, curvature, none := d/float64(last), 1/(2*p.radius()), math.Inf(-1)
	v := view{none, none, none, none, none}
	rise := (p.Receiver - p.Transmitter) / d
	for i, ground := range p.Ground[1:last] {
		near := float64(i+1) * step
		far := d - near
		perNear, perFar := 1/near, 1/far
		height := factor * ground
		bulging := height + curvature*near*far
		v.fromTransmitter = max(v.fromTransmitter, (bulging-p.Transmitter)*perNear)
		v.fromReceiver = max(v.fromReceiver, (bulging-p.Receiver)*perFar)
		above := height - p.Transmitter - rise*near
		v.obstacle = max(v.obstacle, above)
		v.obstacleTransmitter = max(v.obstacleTransmitter, above*perNear)
		v.obstacleReceiver = max(v.obstacleReceiver, above*perFar)
	}
	return v
}

func (p *Path) bullington(seen *view, factor float64) float64 {
	loss := KnifeEdgeLoss(p.bullingtonEdge(seen, factor))
	return loss + (1-math.Exp(-loss/6))*(10+0.02*p.Metres/1000)
}

// bullingtonEdge is ν of the edge that represents the complete path. It is where the two ends' horizon rays
// meet, or the point of the profile nearest to the line of sight.
func (p *Path) bullingtonEdge(seen *view, factor float64) float64 {
	d := p.Metres
	if seen.fromTransmitter < (p.Receiver-p.Transmitter)/d {
		return p.highestInSight(factor)
	}
	edge := (p.Receiver - p.Transmitter + seen.fromReceiver*d) / (seen.fromTransmitter + seen.fromReceiver)
	above := p.Transmitter + seen.fromTransmitter*edge - (p.Transmitter*(d-edge)+p.Receiver*edge)/d
	return above * math.Sqrt(2*d/(p.wavelength()*edge*(d-edge)))
}

// highestInSight is the largest ν of the profile's points, if all lie below the line of sight.
func (p *Path) highestInSight(factor float64) float64 {
	d, step, last := p.Metres, p.Metres/float64(len(p.Ground)-1), len(p.Ground)-1
	curvature, nu := 1/(2*p.radius()), math.Inf(-1)
	for i := 1; i < last; i++ {
		near := float64(i) * step
		far := d - near
		above := factor*p.Ground[i] + curvature*near*far - (p.Transmitter*far+p.Receiver*near)/d
		nu = max(nu, above/math.Sqrt(near*far))
	}
	return nu * math.Sqrt(2*d/p.wavelength())
}

// smoothHeights are the heights above sea level, at either end, of the smooth surface that fits the ground.
// It is lowered where an obstacle would otherwise be part of it: ITU-R P.526-15 §4.5.2 with P.452 annex 1
// attachment 2 §5.1.6.
func (p *Path) smoothHeights(seen *view) (transmitter, receiver float64) {
	first, second := p.fit()
	if seen.obstacle > 0 {
		slopes := seen.obstacleTransmitter + seen.obstacleReceiver
		first -= seen.obstacle * seen.obstacleTransmitter / slopes
		second -= seen.obstacle * seen.obstacleReceiver / slopes
	}
	return min(first, p.Ground[0]), min(second, p.Ground[len(p.Ground)-1])
}

// fit is the least-squares straight line through the ground, at either end.
func (p *Path) fit() (first, second float64) {
	sum, moment := 0.0, 0.0
	for i := 1; i < len(p.Ground); i++ {
		here, before := p.Ground[i], p.Ground[i-1]
		sum += here + before
		moment += here*float64(3*i-1) + before*float64(3*i-2)
	}
	n := float64(len(p.Ground) - 1)
	return (2*sum*n - moment) / (n * n), (moment - sum*n) / (n * n)
}
