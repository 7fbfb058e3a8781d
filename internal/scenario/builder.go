package scenario

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/digests"
	"vignette.dev/vignette/internal/geo"
)

// Options are the options of a Builder.
type Options struct {
	// Sorted promises events in the order of their times, which saves sorting them.
	Sorted bool
	// InMemory keeps the compiled events in memory, for small scenarios where there is no temporary folder. It needs sorted events.
	InMemory bool
	// Context ends the work when it ends; nil for no limit.
	Context context.Context
	// MaxTemporary is the most bytes of each temporary file, or in memory; 4 GiB if zero.
	MaxTemporary int64
	// eventsInMemory is the most events in memory before they are sorted into the temporary folder.
	eventsInMemory int
}

// Builder compiles a scenario from events, in bounded memory. A later event replaces an earlier one for the same value and time.
// Of times before 0 the last one holds at 0, so that EMANE's initial conditions apply from the start. The order of
// other events does not change the output's bytes. A Builder is for one goroutine.
type Builder struct {
	options Options
	moments *momentWriter
	// unsorted has the events until Write; nil if they arrive sorted.
	unsorted *sorter
	last     time.Duration
	written  bool
	checks   uint
	// spans has the times of each platform's positions since the last TakeSpans.
	spans map[int]Span
	// antennas has the profiles, if any, and when each platform has its first.
	antennas antenna.Profiles
	begins   map[int]time.Duration
}

// Span is a span of time, including both ends.
type Span struct{ First, Last time.Duration }

// Overlaps reports whether two spans overlap in more than one shared end.
func (s Span) Overlaps(other Span) bool {
	return s == other || (s.First < other.Last && other.First < s.Last)
}

// NewBuilder returns a builder of a scenario.
func NewBuilder(options Options) *Builder {
	options.eventsInMemory = cmp.Or(options.eventsInMemory, 1<<20)
	options.MaxTemporary = cmp.Or(options.MaxTemporary, 4<<30)
	options.Context = cmp.Or(options.Context, context.Background())
	b := &Builder{options: options, moments: newMomentWriter(options)}
	if !options.Sorted {
		b.unsorted = &sorter{limit: options.eventsInMemory, most: options.MaxTemporary}
	}
	return b
}

// eventsPerCheck is the number of events between two checks of the context.
const eventsPerCheck = 1 << 12

// ended returns the context's error. It checks the context once in eventsPerCheck events.
func (b *Builder) ended() error {
	if b.checks++; b.checks%eventsPerCheck != 1 {
		return nil
	}
	return b.options.Context.Err()
}

// Ended returns the context's error, for work between events.
func (b *Builder) Ended() error { return b.options.Context.Err() }

// Position sets a platform's position from t on.
func (b *Builder) Position(t time.Duration, platform int, p geo.Position) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("platform %d: %w", platform, err)
	}
	if math.Abs(p.Longitude) > 180 {
		p.Longitude = math.Remainder(p.Longitude, 360)
	}
	b.span(max(t, 0), platform)
	return b.platformEvent(t, position, platform, p.Latitude, p.Longitude, p.Altitude)
}

func (b *Builder) span(t time.Duration, platform int) {
	if b.spans == nil {
		b.spans = map[int]Span{}
	}
	s, known := b.spans[platform]
	if !known {
		s = Span{t, t}
	}
	b.spans[platform] = Span{min(s.First, t), max(s.Last, t)}
}

// TakeSpans returns the time spans of each platform's positions since the last call.
func (b *Builder) TakeSpans() map[int]Span {
	spans := b.spans
	b.spans = nil
	return spans
}

// Velocity sets a platform's velocity from t on. Its azimuth counts from 0 to 360 degrees, as in reports of positions.
func (b *Builder) Velocity(t time.Duration, platform int, v geo.Velocity) error {
	if v.Azimuth = math.Mod(v.Azimuth, 360); v.Azimuth < 0 {
		v.Azimuth += 360
	}
	return b.platformEvent(t, velocity, platform, v.Azimuth, v.Elevation, v.Speed)
}

// Orientation sets a platform's orientation from t on.
func (b *Builder) Orientation(t time.Duration, platform int, o geo.Orientation) error {
	return b.platformEvent(t, orientation, platform, o.Pitch, o.Roll, o.Yaw)
}

// Antennas sets the profiles that events may name, before any event. Without them radios keep their fixed gains.
func (b *Builder) Antennas(profiles antenna.Profiles) { b.antennas = profiles }

// HasAntennas reports whether profiles were set.
func (b *Builder) HasAntennas() bool { return b.antennas != nil }

// AntennaProfile sets a platform's antenna profile from t on.
func (b *Builder) AntennaProfile(t time.Duration, platform int, a AntennaProfile) error {
	switch {
	case a.ID < 0 || a.ID > math.MaxUint16:
		return fmt.Errorf("platform %d: antenna profile is %d: want 0 to 65535", platform, a.ID)
	case b.antennas != nil && b.antennas.Find(a.ID) == nil:
		return fmt.Errorf("platform %d: antenna profile is %d: the manifest has no such profile", platform, a.ID)
	}
	if b.begins == nil {
		b.begins = map[int]time.Duration{}
	}
	if first, known := b.begins[platform]; !known || t < first {
		b.begins[platform] = max(t, 0)
	}
	return b.platformEvent(t, antennaProfile, platform, float64(a.ID), a.Azimuth, a.Elevation)
}

// Pathloss sets the pathloss in dB from t on for transmissions of from to to.
func (b *Builder) Pathloss(t time.Duration, from, to int, dB float64) error {
	return b.loss(t, class{kind: pathloss}, from, to, dB)
}

// PathlossAt is Pathloss for one transmit frequency. As in EMANE, 0 Hz stands for all frequencies without their own.
func (b *Builder) PathlossAt(t time.Duration, from, to int, frequencyHertz uint64, dB float64) error {
	if frequencyHertz == 0 {
		return b.Pathloss(t, from, to, dB)
	}
	return b.loss(t, class{pathlossAt, frequencyHertz}, from, to, dB)
}

func (b *Builder) loss(t time.Duration, c class, from, to int, dB float64) error {
	if !(math.Abs(dB) <= maxPathlossDB) {
		return fmt.Errorf("pathloss from %d to %d is %v dB: want a number of at most %d", from, to, dB, maxPathlossDB)
	}
	return b.pairEvent(t, c, from, to, [maxWidth]int64{int64(math.Round(dB * scales[pathloss][0]))})
}

// CommEffect sets the effect from t on for transmissions of from to to.
func (b *Builder) CommEffect(t time.Duration, from, to int, e CommEffect) error {
	switch {
	case e.Latency < 0 || e.Jitter < 0:
		return fmt.Errorf("comm effect from %d to %d has latency %s and jitter %s: want none below 0", from, to, e.Latency, e.Jitter)
	case !(e.LossPercent >= 0 && e.LossPercent <= 100):
		return fmt.Errorf("comm effect from %d to %d has loss %v %%: want 0 to 100", from, to, e.LossPercent)
	case !(e.DuplicationPercent >= 0 && e.DuplicationPercent <= 100):
		return fmt.Errorf("comm effect from %d to %d has duplication %v %%: want 0 to 100", from, to, e.DuplicationPercent)
	}
	scale := scales[commEffect]
	return b.pairEvent(t, class{kind: commEffect}, from, to, [maxWidth]int64{
		int64(e.Latency), int64(e.Jitter),
		int64(math.Round(e.LossPercent * scale[2])), int64(math.Round(e.DuplicationPercent * scale[3])),
		int64(e.UnicastBitsPerSecond), int64(e.BroadcastBitsPerSecond),
	})
}

// FadingSelection sets the fading model from t on for transmissions of from to to.
func (b *Builder) FadingSelection(t time.Duration, from, to int, f Fading) error {
	if f < 0 || f >= fadings {
		return fmt.Errorf("fading from %d to %d is %s: want none, nakagami or lognormal", from, to, f)
	}
	return b.pairEvent(t, class{kind: fadingSelection}, from, to, [maxWidth]int64{int64(f)})
}

// Extend extends the scenario's duration to at least t, without a change then.
func (b *Builder) Extend(t time.Duration) error {
	if t > MaxDuration {
		return timeError(t)
	}
	b.last = max(b.last, t)
	return nil
}

func timeError(t time.Duration) error {
	return fmt.Errorf("time is %g s: want seconds since the scenario's start, at most a year", t.Seconds())
}

func (b *Builder) platformEvent(t time.Duration, k kind, platform int, x, y, z float64) error {
	var values [maxWidth]int64
	for i, v := range [...]float64{x, y, z} {
		if !(math.Abs(v) <= 1e9) {
			return fmt.Errorf("platform %d has a value of %v: want a number", platform, v)
		}
		values[i] = int64(math.Round(v * scales[k][i]))
	}
	if err := checkPlatform(platform); err != nil {
		return err
	}
	return b.event(t, class{kind: k}, uint16(platform), 0, &values)
}

func (b *Builder) pairEvent(t time.Duration, c class, from, to int, values [maxWidth]int64) error {
	if err := cmp.Or(checkPlatform(from), checkPlatform(to)); err != nil {
		return err
	}
	if from == to {
		return fmt.Errorf("platform %d is given a link to itself", from)
	}
	return b.event(t, c, uint16(from), uint16(to), &values)
}

func checkPlatform(platform int) error {
	if platform < MinPlatform || platform > MaxPlatform {
		return fmt.Errorf("platform is %d: want %d to %d", platform, MinPlatform, MaxPlatform)
	}
	return nil
}

func (b *Builder) event(t time.Duration, c class, from, to uint16, values *[maxWidth]int64) error {
	switch {
	case b.written:
		return errors.New("the scenario is written already")
	case t > MaxDuration:
		return timeError(t)
	}
	if err := b.ended(); err != nil {
		return err
	}
	before := t
	t = max(t, 0)
	if b.unsorted != nil {
		b.last = max(b.last, t)
		return b.unsorted.add(event{at: int64(before), class: c, from: from, to: to, values: *values})
	}
	if t < b.last && int64(t) < b.moments.at {
		return fmt.Errorf("event at %g s comes after one at %g s: this builder was promised sorted events", t.Seconds(), time.Duration(b.moments.at).Seconds())
	}
	b.last = max(b.last, t)
	return b.moments.add(int64(t), c, from, to, values)
}

// Write writes the compiled form, once. digest is "sha256:…" of its bytes.
func (b *Builder) Write(w io.Writer) (digest string, err error) {
	if b.written {
		return "", errors.New("the scenario is written already")
	}
	b.written = true
	defer func() { err = errors.Join(err, b.Close()) }()
	if b.unsorted != nil {
		if err := b.unsorted.each(b.addSorted); err != nil {
			return "", err
		}
	}
	if err := b.moments.finish(); err != nil {
		return "", err
	}
	b.indexAntennas()
	hash := sha256.New()
	if err := b.moments.copyTo(&contextWriter{b.options.Context, io.MultiWriter(w, hash)}, b.last); err != nil {
		return "", fmt.Errorf("write the compiled scenario: %w", err)
	}
	return digests.Of(hash), nil
}

// indexAntennas puts the profiles and their users into the index, which readers read before the moments.
func (b *Builder) indexAntennas() {
	if b.antennas == nil || len(b.begins) == 0 {
		return
	}
	b.moments.index.antennas = b.antennas
	for _, platform := range slices.Sorted(maps.Keys(b.begins)) {
		b.moments.index.begins = append(b.moments.index.begins, AntennaStart{platform, b.begins[platform]})
	}
}

func (b *Builder) addSorted(e *event) error {
	if err := b.ended(); err != nil {
		return err
	}
	return b.moments.add(max(e.at, 0), e.class, e.from, e.to, &e.values)
}

// contextWriter writes until its context ends.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w *contextWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// sizeError returns the error of a temporary file above its limit.
func sizeError(bytes, most int64) error {
	if bytes <= most {
		return nil
	}
	return fmt.Errorf("the scenario takes more than %d MiB: want fewer platforms, a shorter duration or fewer events", most>>20)
}

// Close deletes the builder's temporary files. Write does so too.
func (b *Builder) Close() error {
	b.written = true
	err := b.moments.close()
	if b.unsorted != nil {
		err = errors.Join(err, b.unsorted.close())
	}
	return err
}
