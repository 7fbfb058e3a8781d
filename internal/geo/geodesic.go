package geo

import "math"

// inverse is the length in metres of the geodesic from a to b and its azimuth at a in degrees from 0 to 360, by
// T. Vincenty, "Direct and Inverse Solutions of Geodesics on the Ellipsoid with Application of Nested Equations",
// Survey Review XXIII 176, 1975; exact to 0.5 mm. Its iteration does not converge for nearly antipodal positions, for
// which the great circle on the mean sphere (within 0.6 %) stands in.
func inverse(a, b Position) (metres, azimuth float64) {
	l := radians(normalise(b.Longitude - a.Longitude))
	sinU1, cosU1 := math.Sincos(math.Atan((1 - Flattening) * math.Tan(radians(a.Latitude))))
	sinU2, cosU2 := math.Sincos(math.Atan((1 - Flattening) * math.Tan(radians(b.Latitude))))
	lambda := l
	for range 100 {
		sinLambda, cosLambda := math.Sincos(lambda)
		x, y := cosU2*sinLambda, cosU1*sinU2-sinU1*cosU2*cosLambda
		sinSigma := math.Hypot(x, y)
		if sinSigma == 0 && cosLambda > 0 {
			return 0, 0
		}
		cosSigma := sinU1*sinU2 + cosU1*cosU2*cosLambda
		sigma := math.Atan2(sinSigma, cosSigma)
		sinAlpha := cosU1 * cosU2 * sinLambda / sinSigma
		cosSqAlpha := 1 - sinAlpha*sinAlpha
		cos2SigmaM := 0.0 // on the equator, where the general formula is 0/0
		if cosSqAlpha > 1e-15 {
			cos2SigmaM = cosSigma - 2*sinU1*sinU2/cosSqAlpha
		}
		c := Flattening / 16 * cosSqAlpha * (4 + Flattening*(4-3*cosSqAlpha))
		previous := lambda
		lambda = l + (1-c)*Flattening*sinAlpha*(sigma+c*sinSigma*(cos2SigmaM+c*cosSigma*(2*cos2SigmaM*cos2SigmaM-1)))
		if math.Abs(lambda-previous) < 1e-12 {
			return vincentyLength(cosSqAlpha, sigma, sinSigma, cosSigma, cos2SigmaM), compass(x, y)
		}
		if math.Abs(lambda) > math.Pi {
			break
		}
	}
	return greatCircle(a, b)
}

func vincentyLength(cosSqAlpha, sigma, sinSigma, cosSigma, cos2SigmaM float64) float64 {
	uSq := cosSqAlpha * (SemiMajorAxis*SemiMajorAxis/(semiMinorAxis*semiMinorAxis) - 1)
	a := 1 + uSq/16384*(4096+uSq*(-768+uSq*(320-175*uSq)))
	b := uSq / 1024 * (256 + uSq*(-128+uSq*(74-47*uSq)))
	deltaSigma := b * sinSigma * (cos2SigmaM + b/4*(cosSigma*(-1+2*cos2SigmaM*cos2SigmaM)-
		b/6*cos2SigmaM*(-3+4*sinSigma*sinSigma)*(-3+4*cos2SigmaM*cos2SigmaM)))
	return semiMinorAxis * a * (sigma - deltaSigma)
}

func greatCircle(a, b Position) (metres, azimuth float64) {
	sin1, cos1 := math.Sincos(radians(a.Latitude))
	sin2, cos2 := math.Sincos(radians(b.Latitude))
	sinL, cosL := math.Sincos(radians(b.Longitude - a.Longitude))
	x, y := cos2*sinL, cos1*sin2-sin1*cos2*cosL
	return MeanRadius * math.Atan2(math.Hypot(x, y), sin1*sin2+cos1*cos2*cosL), compass(x, y)
}

// compass is the direction with these parts to the east and north, in degrees from 0 to 360.
func compass(east, north float64) float64 {
	azimuth := degrees(math.Atan2(east, north))
	if azimuth < 0 {
		azimuth += 360
	}
	return azimuth
}

// Destination of a straight drive: the position that is metres of ground distance from p in a direction in degrees
// clockwise from north, at p's altitude. It is exact to a few centimetres over 10 km (see Frame.Position).
func Destination(p Position, bearing, metres float64) Position {
	sin, cos := math.Sincos(radians(bearing))
	destination := NewFrame(Position{Latitude: p.Latitude, Longitude: p.Longitude}).Position(Vector{X: metres * sin, Y: metres * cos})
	destination.Altitude = p.Altitude
	return destination
}
