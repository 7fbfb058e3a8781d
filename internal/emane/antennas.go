package emane

import (
	"fmt"
	"path"
	"slices"

	"google.golang.org/protobuf/proto"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/emane/emanepb"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Antennas are the antenna profiles of a network's members as EMANE has them. EMANE gives a radio either a fixed gain or a profile for as long as
// it runs: members whose platform has a profile at some time have one that is omnidirectional, with their fixed gain, before.
type Antennas struct {
	profiles antenna.Profiles
	before   map[int]int // the profile before the first of the scenario, by NEM id
}

// NewAntennas of a network from its scenario; nil where no member's platform has a profile.
func NewAntennas(spec *v1alpha1.RadioNetworkSpec, s *scenario.Scenario) *Antennas {
	if s == nil {
		return nil
	}
	a, platforms, ofGain := &Antennas{profiles: slices.Clone(s.Antennas()), before: map[int]int{}}, s.AntennaPlatforms(), map[float64]int{}
	for i := range spec.Members {
		m := &spec.Members[i]
		if m.Position != nil || m.Platform == nil || !slices.Contains(platforms, int(*m.Platform)) {
			continue
		}
		gain := phyOf(spec, m).gainDBi
		if _, known := ofGain[gain]; !known {
			ofGain[gain] = a.addOmni(gain)
		}
		a.before[int(m.NEM)] = ofGain[gain]
	}
	if len(a.before) == 0 {
		return nil
	}
	return a
}

// addOmni adds a profile of the same gain in all directions, with the first ID that is free.
func (a *Antennas) addOmni(gain float64) (id int) {
	place := 0
	for place < len(a.profiles) && a.profiles[place].ID == id {
		id, place = id+1, place+1
	}
	omni := &antenna.Pattern{Elevations: []antenna.Elevation{{Min: -90, Max: 90, Bearings: []antenna.Bearing{{Min: 0, Max: 359, Gain: gain}}}}}
	a.profiles = slices.Insert(a.profiles, place, antenna.Profile{ID: id, Antenna: omni})
	return id
}

// AntennaFileBytes returns the size of a scenario's antenna profiles in an EMANE pod, with the files' names.
func AntennaFileBytes(s *scenario.Scenario) (size int) {
	if len(s.AntennaPlatforms()) == 0 {
		return 0
	}
	p := Process{Directory: PodDirectory}.withDefaults()
	for _, f := range (&Antennas{profiles: s.Antennas()}).files(&p) {
		size += len(f.Name) + len(f.Text)
	}
	return size
}

// directional reports whether a member has profiles instead of a fixed gain.
func (a *Antennas) directional(nem int) bool {
	if a == nil {
		return false
	}
	_, is := a.before[nem]
	return is
}

// AntennaManifest is the name of the file that lists the profiles; the patterns' files lie beside it.
const AntennaManifest = "antennaprofiles.xml"

// files of the profiles. Each pattern has a file of its own, as EMANE takes a file for one kind of pattern.
func (a *Antennas) files(p *Process) (files []File) {
	type content struct {
		pattern *antenna.Pattern
		kind    string
	}
	names := map[content]string{}
	name := func(pattern *antenna.Pattern, kind string) string {
		c := content{pattern, kind}
		if names[c] == "" {
			names[c] = fmt.Sprintf("antennapattern%d.xml", len(names)+1)
			files = append(files, File{Name: names[c], Text: p.pattern(pattern, kind), Shared: true})
		}
		return escaped(p.uri(names[c]))
	}
	d := p.documentBy("profiles", "antennaprofile")
	for i := range a.profiles {
		f := &a.profiles[i]
		blockage := ""
		if f.Blockage != nil {
			blockage = fmt.Sprintf(" blockagepatternuri=\"%s\"", name(f.Blockage, "blockagepattern"))
		}
		d.line(1, "<profile id=\"%d\" antennapatternuri=\"%s\"%s>", f.ID, name(f.Antenna, "antennapattern"), blockage)
		d.line(2, "<placement north=\"%s\" east=\"%s\" up=\"%s\"/>", decimal(f.Placement.North), decimal(f.Placement.East), decimal(f.Placement.Up))
		d.line(1, "</profile>")
	}
	return append(files, File{Name: AntennaManifest, Text: d.end("profiles"), Shared: true})
}

// uri of a file in the process's folder.
func (p *Process) uri(name string) string { return "file://" + path.Join(p.Directory, name) }

// pattern as a file.
func (p *Process) pattern(pattern *antenna.Pattern, kind string) []byte {
	d := p.documentBy("antennaprofile", "antennaprofile")
	d.line(1, "<%s>", kind)
	for i := range pattern.Elevations {
		e := &pattern.Elevations[i]
		d.line(2, "<elevation min=\"%d\" max=\"%d\">", e.Min, e.Max)
		for _, b := range e.Bearings {
			d.line(3, "<bearing min=\"%d\" max=\"%d\"><gain value=\"%s\"/></bearing>", b.Min, b.Max, decimal(b.Gain))
		}
		d.line(2, "</elevation>")
	}
	d.line(1, "</%s>", kind)
	return d.end("antennaprofile")
}

// pointings that are new since they were last published, or all.
func (f *Feed) pointings(all bool) (events []Event) {
	var turned []*emanepb.AntennaProfile
	for i, m := range f.members {
		if !f.antennas.directional(m.nem) {
			continue
		}
		now, known := f.cursor.AntennaProfile(m.index)
		if !known {
			now = scenario.AntennaProfile{ID: f.antennas.before[m.nem]}
		}
		p := &emanepb.AntennaProfile{Nem: f.nem(i), Profile: new(uint32(now.ID)), Azimuth: &now.Azimuth, Elevation: &now.Elevation}
		if all || !proto.Equal(f.pointed[m.nem], p) {
			f.pointed[m.nem] = p
			turned = append(turned, p)
		}
	}
	for some := range slices.Chunk(turned, maxEntries) {
		events = append(events, event(0, AntennaProfileEvent, &emanepb.AntennaProfiles{Profiles: some}))
	}
	return events
}

// parameters of a member's gain.
func (a *Antennas) parameters(nem int, fixedGainDBi float64) []parameter {
	return []parameter{{"fixedantennagain", decimal(fixedGainDBi), "phy.antennaGain"}, {"fixedantennagainenable", onOff(!a.directional(nem)), "phy.antennaGain"}}
}
