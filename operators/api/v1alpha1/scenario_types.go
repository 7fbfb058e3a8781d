package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ScenarioSource names a file with the movement of platforms.
type ScenarioSource struct {
	// configMap in the scenario's namespace.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ConfigMap string `json:"configMap"`

	// key of the configMap that holds the file; one that ends in .gz is unpacked.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`

	// platform of the file's first track, which its other tracks follow; for csv that of rows without a platform.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65534
	// +optional
	Platform *int32 `json:"platform,omitempty"`

	// offset is how much later all tracks of the file move, such as 30s; earlier if it is negative.
	// +optional
	Offset Offset `json:"offset,omitempty"`
}

// ScenarioFormat of the source.
//
// +kubebuilder:validation:Enum=eel;anglova-csv;gpx;csv;kml;nmea;ns2;sumo;synthetic
type ScenarioFormat string

// The formats: an EMANE event log; rows of pairs with pathloss (ts,d,i_nem_id,i_lat,i_lon,i_alt,j_nem_id,j_lat,j_lon,j_alt,
// pathloss); GPX tracks; rows of positions (time, platform, latitude, longitude, altitude); KML and KMZ; the log of a satellite receiver (NMEA 0183);
// movement of ns-2, which CORE replays too; SUMO's floating car data (--fcd-output); and the seeded generator.
const (
	ScenarioEEL        ScenarioFormat = "eel"
	ScenarioAnglovaCSV ScenarioFormat = "anglova-csv"
	ScenarioGPX        ScenarioFormat = "gpx"
	ScenarioCSV        ScenarioFormat = "csv"
	ScenarioKML        ScenarioFormat = "kml"
	ScenarioNMEA       ScenarioFormat = "nmea"
	ScenarioNS2        ScenarioFormat = "ns2"
	ScenarioSUMO       ScenarioFormat = "sumo"
	ScenarioSynthetic  ScenarioFormat = "synthetic"
)

// TrackAlignment is what starts at a scenario's start.
//
// +kubebuilder:validation:Enum=AsDated;Sources;Tracks
type TrackAlignment string

// The alignments.
const (
	AlignAsDated TrackAlignment = "AsDated"
	AlignSources TrackAlignment = "Sources"
	AlignTracks  TrackAlignment = "Tracks"
)

// ScenarioTracks maps the tracks of files to platforms.
//
// +kubebuilder:validation:XValidation:rule="!has(self.speed) || !has(self.duration)",message="speed and duration exclude each other: leave out one of the two",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="!has(self.start) || self.align == 'AsDated'",message="start is for align: AsDated, as otherwise dates do not count",fieldPath=".start"
// +kubebuilder:validation:XValidation:rule="!has(self.unit) || self.unit.matches('^[^-]*[1-9]')",message="unit must be above zero, such as 1.5m",fieldPath=".unit"
type ScenarioTracks struct {
	// align is what begins at the scenario's start: Sources, each file with its first moment; Tracks, each track with its own. AsDated keeps
	// all times: the first moment of all files is the start where times are dates or times of day.
	// +kubebuilder:default=AsDated
	// +optional
	Align TrackAlignment `json:"align,omitempty"`
	// start is the date of the scenario's start, such as "2026-01-31T12:00:00Z", for files with dates. Earlier parts are cut off.
	// +optional
	Start *metav1.Time `json:"start,omitempty"`
	// speed at which tracks without times are followed, from the start on.
	// +optional
	Speed Speed `json:"speed,omitempty"`
	// duration of each track without times, instead of a speed.
	// +optional
	Duration Duration `json:"duration,omitempty"`
	// origin is the position of the coordinates 0, 0 of ns2, and of sumo without geo.
	// +optional
	Origin *Position `json:"origin,omitempty"`
	// unit of these coordinates.
	// +kubebuilder:default="1m"
	// +optional
	Unit Metres `json:"unit,omitempty"`
	// yAxis is where y grows to: North as on a map, or South as on CORE's canvas.
	// +kubebuilder:validation:Enum=North;South
	// +kubebuilder:default=North
	// +optional
	YAxis string `json:"yAxis,omitempty"`
	// named has platforms and offsets for the tracks, vehicles or nodes of a name.
	// +kubebuilder:validation:MaxItems=1024
	// +listType=map
	// +listMapKey=name
	// +optional
	Named []NamedTrack `json:"named,omitempty"`
}

// NamedTrack has the settings of the tracks of a name.
//
// +kubebuilder:validation:XValidation:rule="!has(self.speed) || !has(self.duration)",message="speed and duration exclude each other: leave out one of the two",fieldPath=".duration"
type NamedTrack struct {
	// name as in the file; that of the file, without folder and ending, for its only track without a name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// platform that the track is of.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65534
	// +optional
	Platform *int32 `json:"platform,omitempty"`
	// offset is how much later the track moves, beside the offset of its source.
	// +optional
	Offset Offset `json:"offset,omitempty"`
	// speed of the track if it has no times.
	// +optional
	Speed Speed `json:"speed,omitempty"`
	// duration of the track if it has no times, instead of a speed.
	// +optional
	Duration Duration `json:"duration,omitempty"`
}

// PropagationModel computes pathloss from positions.
//
// +kubebuilder:validation:Enum=FreeSpace;TwoRay;LogDistance;Diffraction
type PropagationModel string

// The propagation models.
const (
	PropagationFreeSpace   PropagationModel = "FreeSpace"
	PropagationTwoRay      PropagationModel = "TwoRay"
	PropagationLogDistance PropagationModel = "LogDistance"
	PropagationDiffraction PropagationModel = "Diffraction"
)

// Propagation computes a scenario's pathloss from its positions, once, when the scenario is compiled.
//
// +kubebuilder:validation:XValidation:rule="!has(self.terrain) || !has(self.syntheticTerrain)",message="terrain and syntheticTerrain exclude each other: leave out one of the two",fieldPath=".syntheticTerrain"
// +kubebuilder:validation:XValidation:rule="!self.shadowing.matches('^-.*[1-9]')",message="shadowing must not be negative",fieldPath=".shadowing"
// +kubebuilder:validation:XValidation:rule="self.model != 'TwoRay' || self.antennaHeight.matches('^[^-]*[1-9]')",message="antennaHeight must be above zero for TwoRay, such as 3m",fieldPath=".antennaHeight"
type Propagation struct {
	// model of the propagation.
	Model PropagationModel `json:"model"`
	// frequency of the pathloss.
	Frequency Frequency `json:"frequency"`
	// exponent of LogDistance: 2 is free space.
	// +kubebuilder:default="3"
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]([.][0-9]{1,4})?$')",message="must be a number from 0 to 9.9999 in quotes, such as '3'"
	// +optional
	Exponent string `json:"exponent,omitempty"`
	// shadowing is the standard deviation of LogDistance's log-normal shadowing, correlated over shadowingDistance.
	// +kubebuilder:default="0dB"
	// +optional
	Shadowing Decibel `json:"shadowing,omitempty"`
	// shadowingDistance that a pair moves until its shadowing has changed to 1/e of its correlation.
	// +kubebuilder:default="50m"
	// +optional
	ShadowingDistance Metres `json:"shadowingDistance,omitempty"`
	// antennaHeight above the ground of antennas whose positions have no altitude, and the least height above the terrain of the
	// others. Without terrain all antennas of TwoRay and Diffraction have it.
	// +kubebuilder:default="3m"
	// +optional
	AntennaHeight Metres `json:"antennaHeight,omitempty"`
	// terrain is the elevation model for Diffraction: an ESRI ASCII grid (latitude and longitude in degrees).
	// +optional
	Terrain *ScenarioSource `json:"terrain,omitempty"`
	// syntheticTerrain is the seed of generated hills instead of terrain.
	// +optional
	SyntheticTerrain *int64 `json:"syntheticTerrain,omitempty"`
}

// SyntheticMovement generates the movement of a company of vehicles, which is not based on real movement.
//
// +kubebuilder:validation:XValidation:rule="!self.spacing.matches('^-|^[0.]+[a-z]')",message="spacing must be above zero, such as 500m",fieldPath=".spacing"
// +kubebuilder:validation:XValidation:rule="!self.duration.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || duration(self.duration) > duration('0s')",message="duration must be above zero, such as 2h",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="self.pattern in ['Grid', 'Line'] || !self.duration.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || self.platforms * (int(duration(self.duration).getSeconds()) + 1) <= 90000000",message="platforms times the seconds of duration must be at most 90000000, such as 1000 platforms for a day",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="self.pattern != 'AnglovaLikeBattalion' || self.platforms > 24 && self.platforms <= 243",message="platforms of AnglovaLikeBattalion must be 25 to 243, such as 243 for all; 24 are AnglovaLike",fieldPath=".platforms"
type SyntheticMovement struct {
	// pattern of the movement: AnglovaLike has clusters with mostly one hop between vehicles, AnglovaLikeModified chains with
	// several. AnglovaLikeBattalion has six such companies, drones and soldiers on foot: 243 platforms, of which 157 are vehicles. In Grid and
	// Line nobody moves, and platforms have a spacing. RandomWaypoint goes to places drawn at random.
	// +kubebuilder:validation:Enum=AnglovaLike;AnglovaLikeModified;AnglovaLikeBattalion;Grid;Line;RandomWaypoint
	Pattern string `json:"pattern"`
	// platforms, numbered from 1. AnglovaLikeBattalion takes from 25 to 243, which are all.
	// +kubebuilder:default=24
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Platforms int32 `json:"platforms,omitempty"`
	// duration of the movement.
	// +kubebuilder:default="2h"
	// +optional
	Duration Duration `json:"duration,omitempty"`
	// seed of the generator.
	// +kubebuilder:default=1
	// +optional
	Seed int64 `json:"seed,omitempty"`
	// spacing of Grid and Line, and half the side of RandomWaypoint's square.
	// +kubebuilder:default="500m"
	// +optional
	Spacing Metres `json:"spacing,omitempty"`
}

// Unit is a unit of the order of battle, such as a company.
type Unit struct {
	// name of the unit.
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, with a letter first and no hyphen last"
	Name string `json:"name"`
	// within is the unit that commands this one. Without it nobody does.
	// +kubebuilder:validation:MaxLength=24
	// +optional
	Within string `json:"within,omitempty"`
	// commander is the platform of the unit's commander.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65534
	Commander int32 `json:"commander"`
	// platforms of the unit itself, without those of the units that it commands, as ranges such as 1-12,25.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Platforms string `json:"platforms,omitempty"`
	// network of the unit: of its commander, its platforms, and the commanders of the units right below it. A unit without one is
	// on that of the unit that commands it.
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="must be lower-case letters, digits and hyphens, with a letter first and no hyphen last"
	// +optional
	Network string `json:"network,omitempty"`
}

// ScenarioSpec describes how platforms move, and the pathloss between them.
//
// +kubebuilder:validation:XValidation:rule="(self.format == 'synthetic') == has(self.synthetic)",message="format synthetic and the field synthetic go together",fieldPath=".synthetic"
// +kubebuilder:validation:XValidation:rule="self.format == 'synthetic' || has(self.compiled) || has(self.source) || has(self.sources)",message="a scenario needs source, sources or compiled, unless it is synthetic",fieldPath=".source"
// +kubebuilder:validation:XValidation:rule="!has(self.propagation) || !(self.format in ['anglova-csv'])",message="anglova-csv has its own pathloss: leave propagation out",fieldPath=".propagation"
// +kubebuilder:validation:XValidation:rule="!has(self.antennaProfiles) || self.format == 'eel' && !has(self.compiled)",message="antennaProfiles are for format eel, whose antennaprofile events say who has which; a compiled scenario has them already",fieldPath=".antennaProfiles"
// +kubebuilder:validation:XValidation:rule="!has(self.antennaProfiles) || !has(self.antennaProfiles.platform) && !has(self.antennaProfiles.offset)",message="antennaProfiles moves no platform: leave platform and offset out",fieldPath=".antennaProfiles"
// +kubebuilder:validation:XValidation:rule="!has(self.synthetic) || !has(self.propagation) || self.synthetic.pattern in ['Grid', 'Line'] || !self.synthetic.duration.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$') || (self.synthetic.platforms * (self.synthetic.platforms - 1) / 2 * (int(duration(self.synthetic.duration).getSeconds()) + 1)) <= 5000000000",message="with propagation, pairs of platforms times the seconds of duration must be at most 5000000000, such as 1000 platforms for 2h45m",fieldPath=".synthetic.duration"
type ScenarioSpec struct {
	// description for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// format of the source: eel, anglova-csv, gpx, csv, kml, nmea, ns2, sumo or synthetic.
	Format ScenarioFormat `json:"format"`

	// source of the scenario's data.
	// +optional
	Source *ScenarioSource `json:"source,omitempty"`

	// sources are several files, read one after the other, such as locations and pathloss, or one track of each platform.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	// +optional
	Sources []ScenarioSource `json:"sources,omitempty"`

	// compiled is the digest, sha256:…, of a scenario that was compiled and put into the archive by
	// "vignette scenario push", for files too large for ConfigMaps.
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="must be sha256: and 64 hexadecimal digits, as vignette scenario push prints them"
	// +optional
	Compiled string `json:"compiled,omitempty"`

	// tracks maps tracks to platforms, for gpx, csv, kml, nmea, ns2 and sumo.
	// +optional
	Tracks *ScenarioTracks `json:"tracks,omitempty"`

	// synthetic generates the movement.
	// +optional
	Synthetic *SyntheticMovement `json:"synthetic,omitempty"`

	// propagation computes the pathloss from positions. Without it the pathloss of the source is used, if it has any.
	// +optional
	Propagation *Propagation `json:"propagation,omitempty"`

	// orderOfBattle says who commands whom, and who is on which network. "vignette scenario inspect" shows it.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +optional
	OrderOfBattle []Unit `json:"orderOfBattle,omitempty"`

	// antennaProfiles is EMANE's antenna profile manifest, for the antennaprofile events of an event log (eel). The files of its patterns
	// are keys of the same ConfigMap, each called as the last part of its URI.
	// +optional
	AntennaProfiles *ScenarioSource `json:"antennaProfiles,omitempty"`
}

// PathlossFrequency is the frequency for which the propagation computes pathlosses, empty without propagation.
func (s *ScenarioSpec) PathlossFrequency() Frequency {
	if s.Propagation == nil {
		return ""
	}
	return s.Propagation.Frequency
}

// Files of the scenario in the order in which they are read.
func (s *ScenarioSpec) Files() []ScenarioSource {
	if s.Source == nil {
		return s.Sources
	}
	return append([]ScenarioSource{*s.Source}, s.Sources...)
}

// FilesAndTables are the files of the scenario, the terrain, and the manifest of antenna profiles.
func (s *ScenarioSpec) FilesAndTables() (all []ScenarioSource) {
	all = append(all, s.Files()...)
	if s.Propagation != nil && s.Propagation.Terrain != nil {
		all = append(all, *s.Propagation.Terrain)
	}
	if s.AntennaProfiles != nil {
		all = append(all, *s.AntennaProfiles)
	}
	return all
}

// ScenarioStatistics sum up a compiled scenario.
type ScenarioStatistics struct {
	// platforms of the scenario.
	Platforms int32 `json:"platforms"`
	// platformNumbers are the platforms' numbers, ascending, as ranges: 1-24,101.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	PlatformNumbers string `json:"platformNumbers,omitempty"`
	// duration from its first moment to its last.
	Duration Duration `json:"duration"`
	// pathloss is whether the scenario has pathloss between platforms.
	Pathloss bool `json:"pathloss"`
	// positions is whether the scenario has positions of platforms.
	Positions bool `json:"positions"`
	// antennaProfiles are the numbers of the platforms that have antenna profiles at some time, as ranges.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	AntennaProfiles string `json:"antennaProfiles,omitempty"`
	// antennaFileBytes is the size of the antenna profiles and their patterns as files of EMANE.
	// +optional
	AntennaFileBytes int64 `json:"antennaFileBytes,omitempty"`
	// fadingSelections is whether the scenario has fading selections, which EMANE applies.
	// +optional
	FadingSelections bool `json:"fadingSelections,omitempty"`
	// unknownSentences are the kinds of sentences that were ignored, with their number.
	// +kubebuilder:validation:MaxItems=16
	// +optional
	UnknownSentences []string `json:"unknownSentences,omitempty"`
}

// ScenarioStatus is the result of compiling the source.
type ScenarioStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// digest of the compiled scenario, sha256:…
	// +optional
	Digest string `json:"digest,omitempty"`

	// compiledFrom is a digest of the spec and the versions of its ConfigMaps. A scenario is not compiled again from the
	// same ones.
	// +optional
	CompiledFrom string `json:"compiledFrom,omitempty"`

	// statistics of the compiled scenario.
	// +optional
	Statistics *ScenarioStatistics `json:"statistics,omitempty"`

	// conditions: Ready, Reconciling, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Scenario is a movement of platforms that experiments of its namespace may replay.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Format",type=string,JSONPath=`.spec.format`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Scenario struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScenarioSpec `json:"spec"`
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status ScenarioStatus `json:"status,omitempty"`
}

// ScenarioList is a list of scenarios.
//
// +kubebuilder:object:root=true
type ScenarioList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Scenario `json:"items"`
}

func init() { SchemeBuilder.Register(&Scenario{}, &ScenarioList{}) }
