package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/operators/api/units"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// models in the order in which a key's meaning is looked for.
var models = []string{v1alpha1.ModelLink, v1alpha1.ModelRFPipe, v1alpha1.ModelTDMA, v1alpha1.ModelEMANE}

// setter puts what was typed into a change.
type setter func(*v1alpha1.RadioChange, string) error

// key of `set`.
type key struct {
	name string
	set  setter
}

// keysOf the models, in the order of their documentation.
var keysOf = map[string][]key{
	v1alpha1.ModelLink: {
		{"rate", ofLink(func(l *v1alpha1.LinkPatch) **v1alpha1.DataRate { return &l.Rate })},
		{"delay", ofLink(func(l *v1alpha1.LinkPatch) **v1alpha1.Duration { return &l.Delay })},
		{"jitter", ofLink(func(l *v1alpha1.LinkPatch) **v1alpha1.Duration { return &l.Jitter })},
		{"jitterDistribution", ofLink(func(l *v1alpha1.LinkPatch) **v1alpha1.JitterDistribution { return &l.JitterDistribution })},
		{"jitterCorrelation", ofLink(func(l *v1alpha1.LinkPatch) **v1alpha1.Percent { return &l.JitterCorrelation })},
		{"reorder", yesOrNo(func(c *v1alpha1.RadioChange) **bool { return &linkOf(c).Reorder })},
		{"loss", ofLink(func(l *v1alpha1.LinkPatch) **v1alpha1.Percent { return &l.Loss })},
		{"lossCorrelation", ofLink(func(l *v1alpha1.LinkPatch) **v1alpha1.Percent { return &l.LossCorrelation })},
		{"gilbertElliott", setGilbertElliott},
		{"duplicate", ofLink(func(l *v1alpha1.LinkPatch) **v1alpha1.Percent { return &l.Duplicate })},
		{"corrupt", ofLink(func(l *v1alpha1.LinkPatch) **v1alpha1.Percent { return &l.Corrupt })},
		{"limit", setLimit},
		{"limitBytes", setLimitBytes},
		silentKey,
	},
	v1alpha1.ModelRFPipe: slices.Concat([]key{
		radioRate,
		{"delay", ofRadio(func(r *v1alpha1.RadioPatch) **v1alpha1.Duration { return &r.Delay }, anyText)},
		{"jitter", ofRadio(func(r *v1alpha1.RadioPatch) **v1alpha1.Duration { return &r.Jitter }, anyText)},
		{"frequency", ofRadio(func(r *v1alpha1.RadioPatch) **v1alpha1.Frequency { return &r.Frequency }, units.ParseFrequency)},
	}, radioKeys),
	v1alpha1.ModelTDMA:  slices.Concat([]key{radioRate, {"schedule", setSchedule}}, radioKeys),
	v1alpha1.ModelEMANE: slices.DeleteFunc(slices.Clone(radioKeys), func(k key) bool { return k.name == "noiseFigure" || k.name == "jammer" }),
}

var (
	silentKey = key{"silent", yesOrNo(func(c *v1alpha1.RadioChange) **bool { return &c.Silent })}
	radioRate = key{"rate", ofRadio(func(r *v1alpha1.RadioPatch) **v1alpha1.DataRate { return &r.Rate }, anyText)}
	// radioKeys of all radios.
	radioKeys = []key{
		{"transmitPower", ofRadio(func(r *v1alpha1.RadioPatch) **v1alpha1.Power { return &r.TransmitPower }, units.ParsePower)},
		{"antennaGain", ofRadio(func(r *v1alpha1.RadioPatch) **v1alpha1.Gain { return &r.AntennaGain }, units.ParseGain)},
		{"noiseFigure", ofRadio(func(r *v1alpha1.RadioPatch) **v1alpha1.Decibel { return &r.NoiseFigure }, units.ParseDecibel)},
		{"transmit", yesOrNo(func(c *v1alpha1.RadioChange) **bool { return &radioOf(c).Transmit })},
		{"jammer", setJammer},
		silentKey,
	}
)

// keyNames of the models, each once.
func keyNames(models ...string) (names []string) {
	for _, model := range models {
		for _, key := range keysOf[model] {
			if !slices.Contains(names, key.name) {
				names = append(names, key.name)
			}
		}
	}
	return names
}

// modelsWith all of the keys.
func modelsWith(keys ...string) (with []string) {
	for _, model := range models {
		names := keyNames(model)
		if !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(names, key) }) {
			with = append(with, model)
		}
	}
	return with
}

func linkOf(c *v1alpha1.RadioChange) *v1alpha1.LinkPatch {
	if c.Link == nil {
		c.Link = &v1alpha1.LinkPatch{}
	}
	return c.Link
}

func radioOf(c *v1alpha1.RadioChange) *v1alpha1.RadioPatch {
	if c.Radio == nil {
		c.Radio = &v1alpha1.RadioPatch{}
	}
	return c.Radio
}

// quantity says what is wrong with a value that carries a unit. The API server judges what it lets pass; it has no plain words
// for what only has to match a pattern.
type quantity func(string) (float64, error)

// anyText leaves it all to the API server.
func anyText(value string) (float64, error) {
	if value == "" {
		return 0, errors.New("want a value")
	}
	return 0, nil
}

func ofLink[T ~string](field func(*v1alpha1.LinkPatch) **T) setter {
	return func(c *v1alpha1.RadioChange, value string) (err error) {
		*field(linkOf(c)), err = read[T](value, anyText)
		return err
	}
}

func ofRadio[T ~string](field func(*v1alpha1.RadioPatch) **T, check quantity) setter {
	return func(c *v1alpha1.RadioChange, value string) (err error) {
		*field(radioOf(c)), err = read[T](value, check)
		return err
	}
}

func read[T ~string](value string, check quantity) (*T, error) {
	if _, err := check(value); err != nil {
		return nil, err
	}
	converted := T(value)
	return &converted, nil
}

func yesOrNo(field func(*v1alpha1.RadioChange) **bool) setter {
	return func(c *v1alpha1.RadioChange, value string) error {
		b, err := strconv.ParseBool(value)
		if err != nil {
			return errors.New("want true or false")
		}
		*field(c) = &b
		return nil
	}
}

func setLimit(c *v1alpha1.RadioChange, value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return errors.New("want a number of frames, such as 1000")
	}
	limit := int32(n)
	linkOf(c).Limit = &limit
	return nil
}

func setLimitBytes(c *v1alpha1.RadioChange, value string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return errors.New("want a number of bytes, such as 65536")
	}
	linkOf(c).LimitBytes = &n
	return nil
}

func setGilbertElliott(c *v1alpha1.RadioChange, value string) error {
	parts := strings.Split(value, ",")
	if len(parts) < 2 || len(parts) > 4 {
		return errors.New("want goodToBad,badToGood[,lossInBad[,lossInGood]], such as 1%,25%")
	}
	model := &v1alpha1.GilbertElliott{}
	for i, field := range []*v1alpha1.Percent{&model.GoodToBad, &model.BadToGood, &model.LossInBad, &model.LossInGood}[:len(parts)] {
		*field = v1alpha1.Percent(parts[i])
	}
	linkOf(c).GilbertElliott = model
	return nil
}

// mostScheduleBytes that a change may have.
const mostScheduleBytes = 65536

// setSchedule takes the name of the file, as it was typed: readSchedule puts the file in its place.
func setSchedule(c *v1alpha1.RadioChange, value string) error {
	if file, named := strings.CutPrefix(value, "@"); !named || file == "" {
		return errors.New("want @ and the name of an EMANE TDMA schedule file, such as @slots.xml")
	}
	c.Schedule = value
	return nil
}

// readSchedule puts the text of the schedule into a change that has the file's name.
func readSchedule(c *v1alpha1.RadioChange) error {
	name, named := strings.CutPrefix(c.Schedule, "@")
	if !named {
		return nil
	}
	text, err := readAtMost(name, mostScheduleBytes+1)
	switch {
	case err != nil:
		return fmt.Errorf("schedule=@%s: %w", name, err)
	case len(text) == 0:
		return fmt.Errorf("schedule=@%s: the file is empty: want an EMANE TDMA schedule", name)
	case len(text) > mostScheduleBytes:
		return fmt.Errorf("schedule=@%s: the file has more than the %d bytes that a change may have: send the slots that differ alone, without a structure", name, mostScheduleBytes)
	}
	c.Schedule = string(text)
	return nil
}

// The parts of a jammer, after its name.
var jammerParts = []string{"power", "latitude", "longitude", "altitude", "pathloss", "frequency", "bandwidth"}

// setJammer reads NAME,off or NAME,power=…,….
func setJammer(c *v1alpha1.RadioChange, value string) error {
	name, rest, _ := strings.Cut(value, ",")
	if name == "" || strings.Contains(name, "=") {
		return errors.New("want the jammer's name first, such as jammer=noise,power=100W,pathloss=90dB")
	}
	c.Jammer = &v1alpha1.Jammer{Name: name, Silent: rest == "off"}
	if c.Jammer.Ended() {
		return nil
	}
	parts, err := splitJammer(rest)
	if err != nil {
		return err
	}
	return parts.fill(c.Jammer)
}

// jammer as it was typed, by its parts.
type jammer map[string]string

func splitJammer(text string) (jammer, error) {
	parts := jammer{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch _, twice := parts[key]; {
		case part == "":
		case part == "off":
			return nil, errors.New("a jammer that goes off takes nothing else: want jammer=NAME,off")
		case !slices.Contains(jammerParts, key):
			return nil, fmt.Errorf("a jammer has no %s: want %s, or off alone", part, strings.Join(jammerParts, ", "))
		case twice:
			return nil, fmt.Errorf("%s is given twice: give it once", key)
		default:
			parts[key] = value
		}
	}
	return parts, nil
}

// decibels of a jammer's pathloss may leave out their unit.
func decibels(value string) string {
	if value != "" && strings.Trim(value, "0123456789.-") == "" {
		return value + "dB"
	}
	return value
}

func (p jammer) fill(j *v1alpha1.Jammer) (err error) {
	if loss, given := p["pathloss"]; given {
		p["pathloss"] = decibels(loss)
	}
	j.Power = take[v1alpha1.Power](p, "power", units.ParsePower, &err)
	j.Pathloss = take[v1alpha1.Decibel](p, "pathloss", units.ParseDecibel, &err)
	j.Frequency = take[v1alpha1.Frequency](p, "frequency", units.ParseFrequency, &err)
	j.Bandwidth = take[v1alpha1.Frequency](p, "bandwidth", units.ParseFrequency, &err)
	latitude := take[v1alpha1.Degrees](p, "latitude", units.ParseDegrees, &err)
	longitude := take[v1alpha1.Degrees](p, "longitude", units.ParseDegrees, &err)
	altitude := take[v1alpha1.Metres](p, "altitude", units.ParseMetres, &err)
	placed := latitude != nil || longitude != nil || altitude != nil
	switch {
	case err != nil:
		return err
	case j.Power == nil:
		return fmt.Errorf("a jammer needs power, such as power=100W; jammer=%s,off ends it", j.Name)
	case placed && j.Pathloss != nil:
		return errors.New("a jammer has a position or a pathloss to every node: give one of them")
	case !placed && j.Pathloss == nil:
		return errors.New("a jammer needs latitude and longitude, or pathloss, which is that to every node, such as pathloss=90dB")
	case !placed:
		return nil
	case latitude == nil || longitude == nil:
		return errors.New("a jammer's position needs both latitude and longitude")
	}
	j.Position = &v1alpha1.Position{Latitude: *latitude, Longitude: *longitude}
	if altitude != nil {
		j.Position.Altitude = *altitude
	}
	return geo.Position{Latitude: latitude.Float(), Longitude: longitude.Float(), Altitude: j.Position.Altitude.Float()}.Validate()
}

// take a part, where it is given; the first error stays.
func take[T ~string](p jammer, part string, check quantity, first *error) *T {
	value, given := p[part]
	if !given {
		return nil
	}
	taken, err := read[T](value, check)
	if err != nil && *first == nil {
		*first = fmt.Errorf("%s: %w", part, err)
	}
	return taken
}
