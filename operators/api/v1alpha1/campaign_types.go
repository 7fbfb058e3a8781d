package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LabelCampaign is the name of the campaign that an experiment is a run of, LabelCampaignRound the round's number, and
// LabelCampaignPoint the point's name; AnnotationLevels are the point's levels, one for each axis, as JSON. AnnotationReference are the
// point's reference figures, a runapi.Reference as JSON. AnnotationSpecDigest is the run's specDigest.
const (
	LabelCampaign        = "vignette.dev/campaign"
	LabelCampaignUID     = "vignette.dev/campaign-uid"
	LabelCampaignRound   = "vignette.dev/campaign-round"
	LabelCampaignPoint   = "vignette.dev/campaign-point"
	AnnotationLevels     = "vignette.dev/campaign-levels"
	AnnotationReference  = "vignette.dev/campaign-reference"
	AnnotationSpecDigest = "vignette.dev/campaign-spec-digest"
)

// ExperimentTemplate is what the experiments of a campaign have in common.
type ExperimentTemplate struct {
	// metadata of the experiments: labels and annotations.
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitempty"`

	// spec of the experiments, before a point's levels are set in it.
	Spec ExperimentSpec `json:"spec"`
}

// TemplateMetadata are the labels and annotations of a campaign's experiments.
type TemplateMetadata struct {
	// labels of the experiments. Those below vignette.dev/ are the operator's own.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('vignette.dev/'))",message="labels below vignette.dev/ are the operator's own"
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations of the experiments.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
type LabelValue string

// AnnotationValue is the value of an annotation.
//
// +kubebuilder:validation:MaxLength=1024
type AnnotationValue string

// FieldPath names a field of an experiment's spec: names joined by dots, and in brackets the name (or, of a list without names, the
// place, from 0) of an element of a list: duration, networks[wan].link.rate, apps[bft].publisher.period, timeline[0].at.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[a-z][][\w.-]*$`
type FieldPath string

// Setting gives a field of the experiment's spec a value.
type Setting struct {
	// path of the field. Missing parents are created.
	Path FieldPath `json:"path"`

	// value of the field, of any type; null removes it.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	// +nullable
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// LevelName names a level of an axis. The names of a point's levels, joined by hyphens, name the point; there they are in lower case, with
// pct for %, m for a minus, and hyphens for what else is no letter or digit.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._%/:+-]+$`
type LevelName string

// Level is one of the states of an axis, if it is more than one field's value.
type Level struct {
	// name of the level.
	Name LevelName `json:"name"`

	// set are the fields that make this level. None leaves the template as it is.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Set []Setting `json:"set,omitempty"`
}

// Axis is one factor of a campaign: a field with several values, or levels of several fields each.
//
// +kubebuilder:validation:XValidation:rule="has(self.path) != has(self.levels)",message="an axis needs either path and values, or levels"
type Axis struct {
	// name of the axis, such as broker, link or period.
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([A-Za-z0-9-]*[A-Za-z0-9])?$')",message="must be letters, digits and hyphens, with a small letter first and no hyphen last"
	Name string `json:"name"`

	// path of the field that takes the values.
	// +optional
	Path FieldPath `json:"path,omitempty"`

	// values of the field, a level each. A level's name is its value as text (1s, tactical-1, 1%); where that is not a name, give levels.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Values []apiextensionsv1.JSON `json:"values,omitempty"`

	// levels of the axis.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Levels []Level `json:"levels,omitempty"`
}

// Selection picks points by the levels of some axes; an axis that is not named takes any level.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=8
type Selection map[string]LevelName

// Inclusion is a point beside those that the axes span.
type Inclusion struct {
	// name of the point.
	Name LevelName `json:"name"`

	// levels of axes that apply to the point. Axes that are not named leave the template unchanged.
	// +kubebuilder:validation:MaxProperties=8
	// +optional
	Levels map[string]LevelName `json:"levels,omitempty"`

	// set are fields of this point alone, after its levels.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Set []Setting `json:"set,omitempty"`
}

// Matrix spans the points of a campaign: every combination of one level of each axis, without those excluded, with those included.
type Matrix struct {
	// axes of the matrix. Without any, the template itself is the only point.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Axes []Axis `json:"axes,omitempty"`

	// exclude takes out points.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Exclude []Selection `json:"exclude,omitempty"`

	// include adds points.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Include []Inclusion `json:"include,omitempty"`
}

// RunOrder is the order in which a campaign's runs start.
//
// +kubebuilder:validation:Enum=ByPoint;ByRepeat;Shuffled
type RunOrder string

// The orders of runs: all repeats of a point before the next point; every point once before any is repeated, so that a campaign
// that is cut short has something of each; or drawn from the campaign's seed, so that what drifts with time is not taken for an effect.
const (
	OrderByPoint  RunOrder = "ByPoint"
	OrderByRepeat RunOrder = "ByRepeat"
	OrderShuffled RunOrder = "Shuffled"
)

// Figure is a headline figure of a run's results.
//
// +kubebuilder:validation:Enum=DeliveredPercent;MedianDelay
type Figure string

// The figures that a campaign's confidence may be about.
const (
	FigureDeliveredPercent Figure = "DeliveredPercent"
	FigureMedianDelay      Figure = "MedianDelay"
)

// Confidence ends the repeats of a point once its mean is known well enough: when the half width of the 95 % confidence interval of the
// figure over the repeats is at most the given share of it: by Student's t of the mean delay, by Wilson's score of the share delivered.
type Confidence struct {
	// figure that is to be known.
	Figure Figure `json:"figure"`

	// halfWidth of the confidence interval as a share of the mean, such as 5%.
	HalfWidth Percent `json:"halfWidth"`

	// minRepeats of each point before the interval is checked.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=100
	// +optional
	MinRepeats int32 `json:"minRepeats,omitempty"`
}

// StopConditions end a campaign, or the repeats of a point, before all of its runs are done.
type StopConditions struct {
	// failures: a round ends as Failed once this many of its runs have failed. Runs that are under way go on to their end. Without a number
	// all runs are made, and the round is Failed in the end where any of them has failed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Failures *int32 `json:"failures,omitempty"`

	// confidence ends the repeats of a point once its mean is known precisely enough.
	// +optional
	Confidence *Confidence `json:"confidence,omitempty"`
}

// ConcurrencyPolicy is what happens when a round is due while the one before is still active.
//
// +kubebuilder:validation:Enum=Forbid;Replace
type ConcurrencyPolicy string

// The concurrency policies: leave the new round out, or stop the runs of the old one (what they measured is still analysed) and begin
// the new one. Two rounds never go on at once: they would disturb each other.
const (
	ConcurrencyForbid  ConcurrencyPolicy = "Forbid"
	ConcurrencyReplace ConcurrencyPolicy = "Replace"
)

// Schedule starts rounds of the whole campaign repeatedly.
type Schedule struct {
	// cron is five fields (minute, hour, day of month, month, day of week), or @hourly, @daily, @weekly, @monthly.
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(@\w+|\S+( +\S+){4})$')`,message="must be five fields, such as '0 2 * * *', or @daily"
	Cron string `json:"cron"`

	// timeZone of the schedule by its IANA name, such as Europe/Oslo.
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// concurrencyPolicy for a round that is due while the one before is active.
	// +kubebuilder:default=Forbid
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// startingDeadline: a round that could not start for this long after it was due (the operator was down, or the campaign suspended) is left out.
	// +kubebuilder:default="1h"
	// +optional
	StartingDeadline Duration `json:"startingDeadline,omitempty"`
}

// History limits what a campaign keeps in the cluster. Archived results always stay.
type History struct {
	// succeeded experiments of the campaign that are kept, the newest; without it all of the rounds that are kept.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Succeeded *int32 `json:"succeeded,omitempty"`

	// failed experiments of the campaign that are kept, the newest; without it all of the rounds that are kept.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Failed *int32 `json:"failed,omitempty"`

	// rounds of a scheduled campaign that the status tells of and whose experiments are kept, the one under way not counted.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	// +optional
	Rounds *int32 `json:"rounds,omitempty"`
}

// ReferenceFigures name a file of figures that were published, or measured earlier.
type ReferenceFigures struct {
	// ref is the name of a ConfigMap in the campaign's namespace that has the file: CSV with the columns run (a point's name), group, metric,
	// value and note.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Ref string `json:"ref"`

	// key of the ConfigMap. It may be left out where there is only one.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional
	Key string `json:"key,omitempty"`
}

// CampaignSpec is an experiment, and what is varied in it.
type CampaignSpec struct {
	// template of the experiments.
	Template ExperimentTemplate `json:"template"`

	// matrix of what is varied.
	// +optional
	Matrix Matrix `json:"matrix,omitempty"`

	// repeats of every point.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Repeats int32 `json:"repeats,omitempty"`

	// seeds of the repeats, the same for every point, so that points are compared under equal draws. Repeats beyond the list, or all without
	// one, count up from the template's seed.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Seeds []int64 `json:"seeds,omitempty"`

	// order in which runs start.
	// +kubebuilder:default=ByRepeat
	// +optional
	Order RunOrder `json:"order,omitempty"`

	// parallelism is how many runs may be active at once. Those for which there is no room wait in the queue.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Parallelism int32 `json:"parallelism,omitempty"`

	// retries is how often a run that failed, or was lost, is made again, with its seed and a name of its own. Without it none is.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Retries int32 `json:"retries,omitempty"`

	// stopWhen ends the campaign, or the repeats of a point, early.
	// +optional
	StopWhen StopConditions `json:"stopWhen,omitempty"`

	// schedule of rounds. Without one there is one round, at once.
	// +optional
	Schedule *Schedule `json:"schedule,omitempty"`

	// history limits what is kept in the cluster.
	// +kubebuilder:default={rounds: 3}
	// +optional
	History History `json:"history,omitempty"`

	// reference figures, beside which comparisons put those of the campaign's runs. No run starts before they can be read.
	// +optional
	Reference *ReferenceFigures `json:"reference,omitempty"`

	// suspend starts no further runs until it is false again. Active ones continue to their end.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// CampaignPhase is the phase of a campaign.
//
// +kubebuilder:validation:Enum=Pending;Scheduled;Running;Suspended;Reporting;Succeeded;Failed
type CampaignPhase string

// The phases of a campaign. Pending has not been accepted yet; Scheduled waits for the next round; Reporting makes the comparison of a round whose runs are done. A campaign
// with a schedule goes back to Scheduled after each round.
const (
	CampaignPending   CampaignPhase = "Pending"
	CampaignScheduled CampaignPhase = "Scheduled"
	CampaignRunning   CampaignPhase = "Running"
	CampaignSuspended CampaignPhase = "Suspended"
	CampaignReporting CampaignPhase = "Reporting"
	CampaignSucceeded CampaignPhase = "Succeeded"
	CampaignFailed    CampaignPhase = "Failed"
)

// RunPhase is where one run of a campaign is on its way: that of its experiment, or one of Pending (not started yet), Skipped (a stop
// condition made it needless) and Lost (its experiment was deleted before it had finished).
//
// +kubebuilder:validation:Enum=Pending;Queued;Provisioning;Running;Collecting;Analysing;Succeeded;Failed;Skipped;Lost
type RunPhase string

// The phases of a run that its experiment does not have.
const (
	RunPending   RunPhase = "Pending"
	RunSucceeded RunPhase = "Succeeded"
	RunFailed    RunPhase = "Failed"
	RunSkipped   RunPhase = "Skipped"
	RunLost      RunPhase = "Lost"
)

// MaxRetries of a run.
const MaxRetries = 10

// CampaignRun is one point of the matrix, in one of its repeats.
type CampaignRun struct {
	// name of the run's experiment: the campaign's name, the round where there is a schedule, the point's name, the repeat, and the try if it
	// is not the first.
	Name string `json:"name"`

	// point is the name of the point: the names of its levels.
	Point string `json:"point"`

	// repeat of the point, from 1.
	Repeat int32 `json:"repeat"`

	// retry counts the earlier tries, which failed. Absent for the first try.
	// +optional
	Retry int32 `json:"retry,omitempty"`

	// seed of the run.
	Seed int64 `json:"seed"`

	// levels of the point by axis.
	// +optional
	Levels map[string]LevelName `json:"levels,omitempty"`

	// included means that the point is one of matrix.include.
	// +optional
	Included bool `json:"included,omitempty"`

	// phase of the run.
	Phase RunPhase `json:"phase"`

	// uid of the experiment, by which its results are archived.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// specDigest tells whether two runs had the same spec but for the seed: a template that was edited in between shows here.
	// +optional
	SpecDigest string `json:"specDigest,omitempty"`

	// startTime is when the experiment was created.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when it succeeded or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// results of the run in short.
	// +optional
	Results *ResultsSummary `json:"results,omitempty"`

	// message says why it waits, failed, was skipped or is lost.
	// +optional
	Message string `json:"message,omitempty"`
}

// RunCounts counts the runs of a round.
type RunCounts struct {
	// total number of runs.
	// +kubebuilder:default=0
	// +optional
	Total int32 `json:"total"`
	// pending runs have not started.
	// +kubebuilder:default=0
	// +optional
	Pending int32 `json:"pending"`
	// running: from queued to analysing.
	// +kubebuilder:default=0
	// +optional
	Running int32 `json:"running"`
	// succeeded runs.
	// +kubebuilder:default=0
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failed runs, and those lost.
	// +kubebuilder:default=0
	// +optional
	Failed int32 `json:"failed"`
	// skipped runs.
	// +kubebuilder:default=0
	// +optional
	Skipped int32 `json:"skipped"`
	// summary is done/total, for people; done are those that succeeded, failed or were skipped.
	// +optional
	Summary string `json:"summary,omitempty"`
}

// RoundSummary is a round that is over.
type RoundSummary struct {
	// number of the round, from 1.
	Number int64 `json:"number"`
	// phase in which it ended: Succeeded or Failed.
	Phase CampaignPhase `json:"phase"`
	// runs of the round.
	Runs RunCounts `json:"runs"`
	// startTime of the round.
	StartTime metav1.Time `json:"startTime"`
	// completionTime of the round.
	CompletionTime metav1.Time `json:"completionTime"`
	// uids of the runs that succeeded, for a comparison; 100 at most.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	UIDs []types.UID `json:"uids,omitempty"`
	// message says how it ended.
	// +optional
	Message string `json:"message,omitempty"`
}

// ComparisonStatus is the comparison of a round's runs by the analysis.
type ComparisonStatus struct {
	// path of the comparison at the server.
	// +optional
	Path string `json:"path,omitempty"`
	// round that it compares.
	Round int64 `json:"round"`
	// runs that it compares.
	Runs int32 `json:"runs"`
	// message says why there is none.
	// +optional
	Message string `json:"message,omitempty"`
}

// CampaignStatus is the state of a campaign.
type CampaignStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// acceptedGeneration is the last generation of the spec that was accepted, by which runs start.
	// +optional
	AcceptedGeneration int64 `json:"acceptedGeneration,omitempty"`

	// phase of the campaign.
	// +optional
	Phase CampaignPhase `json:"phase,omitempty"`

	// message for people: what is happening, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`

	// round that is active, or was last, from 1.
	// +optional
	Round int64 `json:"round,omitempty"`

	// roundStartTime is when the round started.
	// +optional
	RoundStartTime *metav1.Time `json:"roundStartTime,omitempty"`

	// roundCompletionTime is when the last run of the round was done.
	// +optional
	RoundCompletionTime *metav1.Time `json:"roundCompletionTime,omitempty"`

	// lastScheduleTime is the moment of the schedule for which the last round was started or left out.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// nextScheduleTime is when the next round is due.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// dueTime is the moment of the schedule for which the next round starts. It waits until the runs of this one, which have been stopped,
	// are done (concurrencyPolicy Replace), or until the campaign is resumed.
	// +optional
	DueTime *metav1.Time `json:"dueTime,omitempty"`

	// counts of the round's runs.
	// +optional
	Counts RunCounts `json:"counts,omitempty"`

	// estimatedCompletionTime of the round, from how long its runs took so far, or are to take by their spec.
	// +optional
	EstimatedCompletionTime *metav1.Time `json:"estimatedCompletionTime,omitempty"`

	// runs of the round, in the order in which they start.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	// +optional
	Runs []CampaignRun `json:"runs,omitempty"`

	// rounds that are over, the newest first.
	// +kubebuilder:validation:MaxItems=51
	// +listType=atomic
	// +optional
	Rounds []RoundSummary `json:"rounds,omitempty"`

	// comparison of the last round that is over.
	// +optional
	Comparison *ComparisonStatus `json:"comparison,omitempty"`

	// conditions: Accepted, Ready, Reconciling, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Campaign runs an experiment once for every point of a matrix, and compares the results.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=camp
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Runs",type=string,JSONPath=`.status.counts.summary`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.counts.failed`
// +kubebuilder:printcolumn:name="Round",type=integer,JSONPath=`.status.round`
// +kubebuilder:printcolumn:name="Ends",type=string,JSONPath=`.status.estimatedCompletionTime`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 24 && self.metadata.name.matches('^[a-z0-9-]*$')",message="metadata.name: the name of a campaign has at most 24 letters, digits and hyphens, as its experiments add the point's name to it"
type Campaign struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec may be edited at any time. Runs that have started do not change.
	Spec CampaignSpec `json:"spec"`

	// status is the state of the campaign; the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status CampaignStatus `json:"status,omitempty"`
}

// CampaignList is a list of campaigns.
//
// +kubebuilder:object:root=true
type CampaignList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Campaign `json:"items"`
}

func init() { SchemeBuilder.Register(&Campaign{}, &CampaignList{}) }
