package track

import (
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/position"
)

// metresPerSecond of a kilometre per hour.
const metresPerSecond = 1 / 3.6

// Platform follows the platform of a node. It is safe for concurrent use.
type Platform struct {
	movement *position.Movement
	t0       time.Time

	mu   sync.Mutex
	last Position
}

// NewPlatform follows a movement from T0 on.
func NewPlatform(m *position.Movement, t0 time.Time) *Platform { return &Platform{movement: m, t0: t0} }

// OfNode returns the platform of the node on which this program runs; nil for a node without a position, and outside of a run.
func OfNode() (*Platform, error) {
	path := os.Getenv(appinstance.EnvMovement)
	if path == "" {
		return nil, nil
	}
	t0, err := appinstance.T0()
	if err == nil && t0.IsZero() {
		err = fmt.Errorf("environment variable %s is empty: %s needs T0", appinstance.EnvT0, appinstance.EnvMovement)
	}
	if err != nil {
		return nil, err
	}
	m, err := position.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the node's movement: %w", err)
	}
	return NewPlatform(m, t0), nil
}

// MoveTo implements Track. Where the movement cannot be read, the unit stays where it was.
func (p *Platform) MoveTo(t time.Time) Position {
	place, _, err := p.movement.At(t.Sub(p.t0))
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		level := math.Cos(place.Elevation * math.Pi / 180)
		p.last = Position{LatitudeDegrees: place.Latitude, LongitudeDegrees: place.Longitude, AltitudeMetres: place.Altitude,
			BearingDegrees: place.Azimuth, SpeedKilometresPerHour: place.Speed * level / metresPerSecond}
	}
	return p.last
}

// Reported is the position in a message of a time, for the message log: latitude and longitude in degrees, altitude in metres.
// Nil before the platform's first position.
func (p *Platform) Reported(t time.Time) *[3]float64 {
	place, known, err := p.movement.At(t.Sub(p.t0))
	if err != nil || !known {
		return nil
	}
	return &[3]float64{round(place.Latitude, 1e7), round(place.Longitude, 1e7), round(place.Altitude, 10)}
}

func round(value, parts float64) float64 { return math.Round(value*parts) / parts }
