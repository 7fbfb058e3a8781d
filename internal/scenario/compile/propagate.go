package compile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/propagation"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/synthetic"
	"vignette.dev/vignette/internal/terrain"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// Step is the time between the moments for which pathloss is computed.
	Step = time.Second
	// ResolutionDB is the least change of a pathloss that is recorded.
	ResolutionDB = 0.05
	// UnreachableDB stands for a pathloss that is infinite or unknown to a model: no radio reaches over it.
	UnreachableDB = 999.0
	// cellMetres is the cell size of synthetic terrain, enlarged for very large areas, and the margin around positions.
	cellMetres, marginMetres = 50.0, 500.0
)

// propagate adds the builder's positions to another builder, with the pathloss between them.
func (c *compilation) propagate(b *scenario.Builder, w io.Writer) (Result, error) {
	file, err := scenario.UnnamedFile()
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	if _, err := b.Write(file); err != nil {
		return Result{}, err
	}
	movement, err := opened(file)
	if err != nil {
		return Result{}, err
	}
	p, err := c.checkedPropagator(movement)
	if err != nil {
		return Result{}, err
	}
	return c.propagated(p, nil, w)
}

// propagated writes the scenario with the pathloss along the movement; of some moments only if any are wanted.
func (c *compilation) propagated(p *propagator, wanted *Moments, w io.Writer) (Result, error) {
	out := scenario.NewBuilder(scenario.Options{Sorted: true, Context: c.ctx})
	out.Antennas(c.antennas)
	defer out.Close()
	if err := p.run(c, wanted, out); err != nil {
		return Result{}, err
	}
	c.warnings = append(c.warnings, p.warnings()...)
	return c.finish(out, w)
}

// checkedPropagator checks that a movement has what propagation needs, and warns of what it leaves out.
func (c *compilation) checkedPropagator(movement *scenario.Scenario) (*propagator, error) {
	if len(movement.Platforms()) == 0 {
		return nil, c.nothing(scenario.Report{Unknown: c.unknown}.UnknownSentences())
	}
	if !movement.HasPositions() {
		return nil, errors.New("propagation needs positions, but the sources have none")
	}
	if movement.HasPathloss() {
		c.warnings = append(c.warnings, "the source's pathloss is left out, as propagation is given")
	}
	if names := movement.OtherContents(); len(names) > 0 {
		c.warnings = append(c.warnings, fmt.Sprintf("the source's %s are left out, as propagation is given", strings.Join(names, " and ")))
	}
	st := movement.Statistics()
	if err := checkSize(int64(st.Platforms), min(st.Moments, int64(st.Duration/Step)+1)); err != nil {
		return nil, err
	}
	return c.propagator(movement)
}

// maxPathlosses is the most values of a propagation model: 1000 platforms that move for 2 h 45 min, or 243 for two days.
const maxPathlosses = 5_000_000_000

// checkSize returns an error, before the computation, for a movement whose pathloss would take too long.
func checkSize(platforms, moments int64) error {
	if pairs := platforms * (platforms - 1) / 2; pairs*moments > maxPathlosses {
		return fmt.Errorf("propagation: %d platforms move at %d moments, each second at most: the pathloss of %d pairs would be asked for %d times: want at most %d, by fewer platforms or a shorter duration",
			platforms, moments, pairs, pairs*moments, int64(maxPathlosses))
	}
	return nil
}

// propagator computes pathloss along a movement.
type propagator struct {
	movement      *scenario.Scenario
	platforms     []int
	model         propagation.Model
	ground        terrain.Surface
	hertz         float64
	antennaMetres float64

	places []place
	// sampled is set where pathloss is computed at some moments only.
	sampled bool
	// written has the last recorded pathloss in dB, and fresh the current one, of each pair i > j at i(i-1)/2+j.
	written, fresh []float32

	// flat: the model assumes flat ground, so altitudes above the sea do not give the antennas' heights.
	flat, twoRay bool
	span         propagation.TwoRayRange
	// outside are positions beyond the terrain, below those under it, and ignored those with an altitude over flat ground.
	outside, below, ignored tally
}

// tally counts positions and keeps the first.
type tally struct {
	count, platform int
	at              time.Duration
}

func (t *tally) add(platform int, at time.Duration) {
	if t.count == 0 {
		t.platform, t.at = platform, at
	}
	t.count++
}

func (t *tally) warn(warnings []string, what, consequence string) []string {
	if t.count == 0 {
		return warnings
	}
	return append(warnings, fmt.Sprintf("platform %d %s at %s, one of %d such positions: %s", t.platform, what, t.at, t.count, consequence))
}

func (p *propagator) warnings() []string {
	warnings := p.outside.warn(nil, "is where the terrain is not known", "they are out of reach")
	warnings = p.below.warn(warnings, "is below the terrain", fmt.Sprintf("their antennas count as %g m above it", p.antennaMetres))
	warnings = p.ignored.warn(warnings, "has an altitude", fmt.Sprintf("without terrain every antenna counts as %g m above the ground", p.antennaMetres))
	return append(warnings, p.span.Warnings()...)
}

// place is a platform's current place.
type place struct {
	position geo.Position
	// antenna is the antenna's position in the model, and height its height above the ground.
	antenna        geo.Position
	height         float64
	known, reached bool
	moved          bool
	posture        posture
}

// posture is the orientation of a platform and its antenna. Each part may be unknown.
type posture struct {
	velocity    optional[geo.Velocity]
	orientation optional[geo.Orientation]
	antenna     optional[scenario.AntennaProfile]
}

type optional[T comparable] struct {
	value T
	known bool
}

func knownOf[T comparable](value T, is bool) optional[T] { return optional[T]{value, is} }

// put adds it to a scenario if it is known and has changed.
func (k optional[T]) put(before optional[T], at time.Duration, platform int, put func(time.Duration, int, T) error) error {
	if !k.known || k == before {
		return nil
	}
	return put(at, platform, k.value)
}

func (c *compilation) propagator(movement *scenario.Scenario) (*propagator, error) {
	spec := c.spec.Propagation
	p := &propagator{movement: movement, platforms: movement.Platforms(), hertz: spec.Frequency.Hertz(), antennaMetres: propagation.DefaultAntennaMetres}
	if err := checkPropagation(spec); err != nil {
		return nil, err
	}
	if spec.AntennaHeight != "" {
		p.antennaMetres = spec.AntennaHeight.Float()
	}
	var err error
	if p.ground, err = c.terrain(movement); err != nil {
		return nil, err
	}
	c.warnings = append(c.warnings, Doubts(&c.spec)...)
	if p.model, err = c.model(p.ground); err != nil {
		return nil, err
	}
	p.twoRay = spec.Model == v1alpha1.PropagationTwoRay
	p.flat = p.ground == nil && (p.twoRay || spec.Model == v1alpha1.PropagationDiffraction)
	p.begin()
	return p, nil
}

// begin forgets all places and pathlosses.
func (p *propagator) begin() {
	n := len(p.platforms)
	p.places = make([]place, n)
	p.written, p.fresh = make([]float32, n*(n-1)/2), make([]float32, n*(n-1)/2)
	for i := range p.written {
		p.written[i] = float32(math.Inf(-1))
	}
}

// Doubts returns settings that an author hardly wants, whatever the files have. Compile warns of them too.
func Doubts(spec *v1alpha1.ScenarioSpec) []string {
	p := spec.Propagation
	if p == nil || (p.Terrain == nil && p.SyntheticTerrain == nil) || (p.Model != v1alpha1.PropagationFreeSpace && p.Model != v1alpha1.PropagationLogDistance) {
		return nil
	}
	return []string{fmt.Sprintf("%s takes nothing of the terrain but the heights of antennas: no hill is in the way; Diffraction takes it all", p.Model)}
}

// Check returns what is impossible in a scenario, whatever its files have.
func Check(spec *v1alpha1.ScenarioSpec) error {
	if err := checkTracks(spec); err != nil {
		return err
	}
	if err := checkOrderOfBattle(spec); err != nil {
		return err
	}
	if spec.Synthetic != nil {
		if err := synthetic.Check(*spec.Synthetic); err != nil {
			return err
		}
	}
	if spec.Propagation == nil {
		return nil
	}
	if spec.Synthetic != nil {
		if err := checkSize(synthetic.Size(*spec.Synthetic)); err != nil {
			return err
		}
	}
	return checkPropagation(spec.Propagation)
}

// CheckCompiled returns what is impossible in a spec beside the scenario that was compiled for it.
func CheckCompiled(spec *v1alpha1.ScenarioSpec, s *scenario.Scenario) error {
	if err := Check(spec); err != nil {
		return err
	}
	if spec.Propagation != nil && !s.HasPathloss() {
		return errors.New(`propagation: the compiled scenario has no pathloss, and gets none: store this Scenario's file, without compiled, with "vignette scenario push"`)
	}
	return checkMembers(spec.OrderOfBattle, s.Platforms())
}

func checkPropagation(p *v1alpha1.Propagation) error {
	if !(p.Frequency.Hertz() > 0) {
		return fmt.Errorf("propagation: frequency is %q: must be above zero, such as 300MHz", p.Frequency)
	}
	if p.Terrain != nil && p.SyntheticTerrain != nil {
		return errors.New("propagation: terrain and syntheticTerrain exclude each other")
	}
	if p.Model == v1alpha1.PropagationTwoRay && p.AntennaHeight != "" && !(p.AntennaHeight.Float() > 0) {
		return fmt.Errorf("propagation: antennaHeight is %q: must be above zero for TwoRay, such as 3m", p.AntennaHeight)
	}
	if _, err := strconv.ParseFloat(cmp.Or(p.Exponent, "3"), 64); err != nil {
		return fmt.Errorf("propagation: exponent is %q: must be a number, such as 3.2", p.Exponent)
	}
	deviation, distance := p.Shadowing.DB(), shadowingDistance(p)
	if p.Model == v1alpha1.PropagationLogDistance && deviation != 0 && !(deviation > 0 && distance.Float() > 0) {
		return fmt.Errorf("propagation: shadowing %s over %s: must not be negative, over a distance above zero", p.Shadowing, distance)
	}
	return nil
}

func shadowingDistance(p *v1alpha1.Propagation) v1alpha1.Metres {
	return cmp.Or(p.ShadowingDistance, "50m")
}

// model returns the spec's model over a ground, which may be nil.
func (c *compilation) model(ground terrain.Surface) (propagation.Model, error) {
	spec := c.spec.Propagation
	switch spec.Model {
	case v1alpha1.PropagationFreeSpace:
		return propagation.FreeSpace{}, nil
	case v1alpha1.PropagationTwoRay:
		return propagation.TwoRay{Ground: ground}, nil
	case v1alpha1.PropagationDiffraction:
		if ground == nil {
			c.warnings = append(c.warnings, "Diffraction without terrain or syntheticTerrain is that over a smooth Earth")
		}
		return propagation.Diffraction{Terrain: ground}, nil
	case v1alpha1.PropagationLogDistance:
		m := propagation.LogDistance{Exponent: 3}
		if spec.Exponent != "" {
			m.Exponent, _ = strconv.ParseFloat(spec.Exponent, 64) // it was checked
		}
		if deviation := spec.Shadowing.DB(); deviation != 0 {
			m.Shadowing = propagation.NewShadowing(c.seed(), deviation, shadowingDistance(spec).Float())
		}
		return m, nil
	}
	return nil, fmt.Errorf("propagation: model is %q: must be FreeSpace, TwoRay, LogDistance or Diffraction", spec.Model)
}

// seed returns the seed of the shadowing: the movement's, or 1.
func (c *compilation) seed() int64 {
	if c.spec.Synthetic != nil {
		return c.spec.Synthetic.Seed
	}
	return 1
}

// terrain returns the spec's terrain; nil if it has none.
func (c *compilation) terrain(movement *scenario.Scenario) (terrain.Surface, error) {
	spec := c.spec.Propagation
	switch {
	case spec.Terrain != nil:
		text, err := c.fetch(*spec.Terrain)
		if err != nil {
			return nil, err
		}
		grid, err := terrain.ReadESRI(c.reader(text), name(*spec.Terrain))
		if err != nil {
			return nil, err
		}
		if missing := grid.Missing(); missing > 0 {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: %d cells of the terrain have no data: nothing is received over them", name(*spec.Terrain), missing))
		}
		return grid, nil
	case spec.SyntheticTerrain != nil:
		southWest, northEast, err := c.area(movement)
		if err != nil {
			return nil, err
		}
		cell := max(cellMetres, math.Sqrt(square(southWest, northEast)/(terrain.MaxCells/2)))
		return terrain.Raster(c.ctx, terrain.Synthetic(*spec.SyntheticTerrain), southWest, northEast, cell)
	}
	return nil, nil
}

// square returns the area in m² between two corners.
func square(southWest, northEast terrain.Place) float64 {
	middle := (southWest.Latitude + northEast.Latitude) / 2 * math.Pi / 180
	const degree = 111_195.0
	return (northEast.Latitude - southWest.Latitude) * degree * (northEast.Longitude - southWest.Longitude) * degree * math.Cos(middle)
}

// area returns the area of all positions and of the great circles between them, and a margin.
func (c *compilation) area(movement *scenario.Scenario) (southWest, northEast terrain.Place, err error) {
	southWest, northEast = terrain.Place{Latitude: 91, Longitude: 541}, terrain.Place{Latitude: -91, Longitude: -541}
	first := math.NaN() // a platform's longitude as the reference for the others: the area may cross the antimeridian
	err = moments(movement, func(_ time.Duration, cursor *scenario.Cursor) error {
		for i := range movement.Platforms() {
			if p, known := cursor.Position(i); known {
				if math.IsNaN(first) {
					first = p.Longitude
				}
				longitude := beside(p.Longitude, first)
				southWest.Latitude, northEast.Latitude = min(southWest.Latitude, p.Latitude), max(northEast.Latitude, p.Latitude)
				southWest.Longitude, northEast.Longitude = min(southWest.Longitude, longitude), max(northEast.Longitude, longitude)
			}
		}
		return c.ctx.Err()
	})
	apart := northEast.Longitude - southWest.Longitude
	southWest.Latitude, northEast.Latitude = min(southWest.Latitude, bulge(southWest.Latitude, apart)), max(northEast.Latitude, bulge(northEast.Latitude, apart))
	north := marginMetres / 111_000
	east := north / max(0.01, math.Cos(northEast.Latitude*math.Pi/180))
	return terrain.Place{Latitude: southWest.Latitude - north, Longitude: southWest.Longitude - east},
		terrain.Place{Latitude: northEast.Latitude + north, Longitude: northEast.Longitude + east}, err
}

// bulge returns the latitude nearest to a pole on the great circle between two places of one latitude.
func bulge(latitude, degreesApart float64) float64 {
	sin, cos := math.Sincos(latitude * math.Pi / 180)
	return math.Atan2(sin, cos*max(0, math.Cos(degreesApart/2*math.Pi/180))) * 180 / math.Pi
}

// beside returns a longitude plus or minus full turns, so that it is at most half a turn from another.
func beside(longitude, other float64) float64 {
	switch {
	case longitude-other > 180:
		return longitude - 360
	case longitude-other < -180:
		return longitude + 360
	}
	return longitude
}

// moments calls do at full steps: at the start, and after each step with a change.
func moments(s *scenario.Scenario, do func(t time.Duration, cursor *scenario.Cursor) error) error {
	cursor := s.NewCursor()
	for t := time.Duration(0); ; {
		if err := cursor.Seek(t); err != nil {
			return err
		}
		if err := do(t, cursor); err != nil {
			return err
		}
		next, more := following(t, cursor)
		if !more {
			return nil
		}
		t = next
	}
}

// following is the full step after t with the next change.
func following(t time.Duration, cursor *scenario.Cursor) (next time.Duration, more bool) {
	next, more = cursor.Next()
	return max(t+Step, (next+Step-1)/Step*Step), more
}

func (p *propagator) run(c *compilation, wanted *Moments, out *scenario.Builder) error {
	err := moments(p.movement, func(t time.Duration, cursor *scenario.Cursor) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := p.move(t, cursor, out); err != nil {
			return err
		}
		if wanted != nil {
			return p.sample(c.ctx, t, cursor, wanted, out)
		}
		p.compute(c.ctx)
		return cmp.Or(c.ctx.Err(), p.record(t, out))
	})
	return errors.Join(err, out.Extend(p.movement.Duration()))
}

// move moves the platforms to their positions at t.
func (p *propagator) move(t time.Duration, cursor *scenario.Cursor, out *scenario.Builder) error {
	for i, platform := range p.platforms {
		now, known := cursor.Position(i)
		at := &p.places[i]
		ground, reached := p.elevation(now, known)
		given := now.Altitude != 0
		if known && reached && !given {
			now.Altitude = ground + p.antennaMetres
		}
		at.moved = known && (!at.known || at.position != now)
		at.position, at.known, at.reached = now, known, reached
		if err := at.turn(t, platform, cursor, i, out); err != nil {
			return err
		}
		if !at.moved {
			continue
		}
		p.raise(at, ground)
		switch {
		case !reached:
			p.outside.add(platform, t)
		case p.flat && given:
			p.ignored.add(platform, t)
		case p.ground != nil && now.Altitude < ground:
			p.below.add(platform, t)
		}
		if err := out.Position(t, platform, now); err != nil {
			return err
		}
	}
	return nil
}

// turn sets the orientation at t of a platform, and of its antenna if there is a manifest, moved or not.
func (at *place) turn(t time.Duration, platform int, cursor *scenario.Cursor, i int, out *scenario.Builder) error {
	before := at.posture
	at.posture = posture{velocity: knownOf(cursor.Velocity(i)), orientation: knownOf(cursor.Orientation(i))}
	if out.HasAntennas() {
		at.posture.antenna = knownOf(cursor.AntennaProfile(i))
	}
	return errors.Join(at.posture.velocity.put(before.velocity, t, platform, out.Velocity), at.posture.orientation.put(before.orientation, t, platform, out.Orientation),
		at.posture.antenna.put(before.antenna, t, platform, out.AntennaProfile))
}

// elevation returns the ground's elevation at a position; ok is false if it is unknown.
func (p *propagator) elevation(at geo.Position, known bool) (ground float64, ok bool) {
	if !known || p.ground == nil {
		return 0, known
	}
	return p.ground.Elevation(at.Latitude, at.Longitude)
}

// raise raises an antenna to at least its height above the ground, as measured altitudes are often some metres off.
func (p *propagator) raise(at *place, ground float64) {
	at.antenna = at.position
	switch {
	case p.flat:
		at.antenna.Altitude = p.antennaMetres
	case p.ground != nil:
		at.antenna.Altitude = max(at.antenna.Altitude, ground+p.antennaMetres)
	}
	at.height = at.antenna.Altitude - ground
}

// compute computes the pathloss of all pairs with a moved platform, on all processors, until a context ends.
func (p *propagator) compute(ctx context.Context) {
	var group sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(p.places))
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < len(p.places) && ctx.Err() == nil; i += workers {
				p.computeRow(i)
			}
		})
	}
	group.Wait()
}

func (p *propagator) computeRow(i int) {
	for j := range i {
		if p.hasMoved(i, j) {
			p.computePair(i, j)
		}
	}
}

// hasMoved reports whether the pathloss of a pair may have changed since it was computed. With sampled it always
// may, because moved is about the time since the last moment, for which nothing may have been computed.
func (p *propagator) hasMoved(i, j int) bool {
	a, b := &p.places[i], &p.places[j]
	return a.known && b.known && (p.sampled || a.moved || b.moved)
}

// computePair i > j.
func (p *propagator) computePair(i, j int) {
	a, b := &p.places[i], &p.places[j]
	loss := math.NaN()
	if a.reached && b.reached {
		loss = p.model.Pathloss(a.antenna, b.antenna, p.hertz)
	}
	if !(loss < UnreachableDB) {
		loss = UnreachableDB
	}
	p.fresh[i*(i-1)/2+j] = float32(loss)
}

// record records each pathloss that has changed by the resolution.
func (p *propagator) record(t time.Duration, out *scenario.Builder) error {
	for i := range p.places {
		for j := range i {
			if p.hasMoved(i, j) {
				if err := p.recordPair(t, i, j, out); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p *propagator) recordPair(t time.Duration, i, j int, out *scenario.Builder) error {
	a, b, k := &p.places[i], &p.places[j], i*(i-1)/2+j
	if p.twoRay && a.reached && b.reached {
		p.span.Add(geo.Distance(a.antenna, b.antenna), a.height, b.height, p.hertz)
	}
	if math.Abs(float64(p.fresh[k]-p.written[k])) < ResolutionDB {
		return nil
	}
	p.written[k] = p.fresh[k]
	loss := float64(p.fresh[k])
	return errors.Join(out.Pathloss(t, p.platforms[i], p.platforms[j], loss), out.Pathloss(t, p.platforms[j], p.platforms[i], loss))
}
