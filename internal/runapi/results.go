package runapi

import "time"

// Results is `vignette results NAME -o json`: a stable contract. The top-level figures are those
// of the group `all`. Empty sets are null; a figure that was not computed is absent and listed in
// Gaps.
type Results struct {
	SchemaVersion   int        `json:"schemaVersion"`
	Experiment      string     `json:"experiment"`
	Namespace       string     `json:"namespace"`
	UID             string     `json:"uid"`
	Phase           string     `json:"phase"`
	StartTime       *time.Time `json:"startTime,omitempty"`
	DurationSeconds float64    `json:"durationSeconds"`
	Verdict         *Verdict   `json:"verdict,omitempty"`
	Messages        Messages   `json:"messages"`
	// DelaySeconds from sent to received; null where nothing was received.
	DelaySeconds *Quantiles        `json:"delaySeconds"`
	Groups       []GroupResult     `json:"groups"`
	Publishers   []PublisherResult `json:"publishers"`
	Networks     []NetworkResult   `json:"networks"`
	Gaps         []Gap             `json:"gaps"`
	// Hosts that carried nodes, and how busy they were; absent where no radiod told.
	Hosts []HostResult `json:"hosts,omitempty"`
	// Clocks of the nodes that have one of their own, as virtual machines do; absent where there are none.
	Clocks []ClockResult `json:"clocks,omitempty"`
	// RerunOf is the UID of the run that this one repeats, if it repeats one.
	RerunOf string `json:"rerunOf,omitempty"`
}

// ClockResult is how well a node kept its own clock to the server's, from before its apps ran on.
type ClockResult struct {
	Node string `json:"node"`
	// WorstOffsetSeconds from the server's clock, without its sign, and WorstUncertaintySeconds of what was measured: delays to and from
	// other nodes may be wrong by their sum.
	WorstOffsetSeconds      float64 `json:"worstOffsetSeconds"`
	WorstUncertaintySeconds float64 `json:"worstUncertaintySeconds"`
	// SetSeconds is by how much the clock was set before any app ran.
	SetSeconds   float64 `json:"setSeconds"`
	Measurements int     `json:"measurements"`
}

// HostResult is how busy a host was from T0 to the end of the drain, whoever kept it busy.
type HostResult struct {
	Name string `json:"name"`
	CPUs int    `json:"cpus"`
	// BusyPercent of all processors: on average, and in its busiest second.
	BusyPercent    float64 `json:"busyPercent"`
	MaxBusyPercent float64 `json:"maxBusyPercent"`
	// MaxLoadAverage of a minute.
	MaxLoadAverage float64 `json:"maxLoadAverage"`
	// StolenSeconds that a hypervisor took, added over all processors.
	StolenSeconds float64 `json:"stolenSeconds"`
	// StoodStillSeconds in which the whole host stood still, in so many Stops (RadioStill); absent where it never did, or its kernel does not tell.
	StoodStillSeconds float64 `json:"stoodStillSeconds,omitempty"`
	Stops             int     `json:"stops,omitempty"`
	// ProcessorStoodStillSeconds in which single processors stood still, alone or with the others, added over all of them, in so many ProcessorStops
	// (RadioProcessorStill); absent as above.
	ProcessorStoodStillSeconds float64 `json:"processorStoodStillSeconds,omitempty"`
	ProcessorStops             int     `json:"processorStops,omitempty"`
	// CPUPressurePercent and MemoryPressurePercent of the time some task waited for a processor, or for memory; absent where the
	// kernel does not tell.
	CPUPressurePercent    *float64 `json:"cpuPressurePercent,omitempty"`
	MemoryPressurePercent *float64 `json:"memoryPressurePercent,omitempty"`
}

// Verdict says whether the emulation kept up, so that overload is never mistaken for radio loss.
type Verdict struct {
	KeptUp bool   `json:"keptUp"`
	Late   []Late `json:"late"`
}

// Late names when and where the emulation did not keep up.
type Late struct {
	Node         string  `json:"node"`
	FromSeconds  float64 `json:"fromSeconds"`
	ToSeconds    float64 `json:"toSeconds"`
	What         string  `json:"what"`
	WorstSeconds float64 `json:"worstSeconds"`
	// StoodStillSeconds in which the node's whole host stood still meanwhile (RadioStill), or that of all hosts which did so the longest, of an entry
	// without a node: the longest stop, or several that began within WorstSeconds. It is up to 5 ms short of each, and explains so much of
	// WorstSeconds, which is late all the same. Absent where the host did not stand still, or its kernel does not tell.
	StoodStillSeconds float64 `json:"stoodStillSeconds,omitempty"`
	// ProcessorStoodStillSeconds is the same of the processor that stood still the longest meanwhile (RadioProcessorStill). It explains what waited for
	// that processor, which may be all of WorstSeconds or nothing. Absent where no processor stood still for longer than the whole host.
	ProcessorStoodStillSeconds float64 `json:"processorStoodStillSeconds,omitempty"`
}

// Messages counts messages and deliveries. Expected counts each message once per other instance
// that subscribes to it; Received, Lost and Duplicates are of those deliveries.
type Messages struct {
	Sent        int64   `json:"sent"`
	Expected    int64   `json:"expected"`
	Received    int64   `json:"received"`
	Lost        int64   `json:"lost"`
	LostPercent float64 `json:"lostPercent"`
	Duplicates  int64   `json:"duplicates"`
	// NeverSent counts messages that were triggered and never sent; they are in no other count. Absent in older results.
	NeverSent *int64 `json:"neverSent,omitempty"`
}

// Confidence holds intervals that cover the true value with the probability Level, if deliveries were
// independent of each other: the median's by the bootstrap, that of the lost share by Wilson's score.
// MedianSeconds is null for fewer deliveries than can tell, LostPercent where nothing was expected.
type Confidence struct {
	Level         float64   `json:"level"`
	MedianSeconds *Interval `json:"medianSeconds"`
	LostPercent   *Interval `json:"lostPercent"`
}

// Interval from Low to High, in the unit of what it is of.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Quantiles of delays in seconds, by linear interpolation.
type Quantiles struct {
	Min    float64 `json:"min"`
	P25    float64 `json:"p25"`
	Median float64 `json:"median"`
	P75    float64 `json:"p75"`
	Max    float64 `json:"max"`
}

// GroupResult is the result of a group of deliveries: all; local, which never left a node's
// namespace; cross, between nodes of different groups; or a node group's name, by the publisher's node.
type GroupResult struct {
	Name         string     `json:"name"`
	Messages     Messages   `json:"messages"`
	DelaySeconds *Quantiles `json:"delaySeconds"`
	// Confidence is absent in older results.
	Confidence *Confidence `json:"confidence,omitempty"`
}

// PublisherResult is the result of one publishing instance.
type PublisherResult struct {
	Name         string     `json:"name"`
	Node         string     `json:"node"`
	Messages     Messages   `json:"messages"`
	DelaySeconds *Quantiles `json:"delaySeconds"`
	// Confidence is absent in older results.
	Confidence *Confidence `json:"confidence,omitempty"`
}

// NetworkResult is the data volume of one network.
type NetworkResult struct {
	Name string `json:"name"`
	// BytesPerSecond of L2 bytes sent, once per transmission, from the first start to the end of the drain.
	BytesPerSecond        *float64           `json:"bytesPerSecond,omitempty"`
	ByLayer               map[string]float64 `json:"byLayer,omitempty"`
	RoutingBytesPerSecond *float64           `json:"routingBytesPerSecond,omitempty"`
	TCP                   *TCPResult         `json:"tcp,omitempty"`
}

// TCPResult counts what Wireshark defines.
type TCPResult struct {
	Retransmissions int64 `json:"retransmissions"`
	Spurious        int64 `json:"spurious"`
	DuplicateAcks   int64 `json:"duplicateAcks"`
}

// Gap is something that is missing from the results, and why.
type Gap struct {
	What        string   `json:"what"`
	Node        string   `json:"node,omitempty"`
	FromSeconds *float64 `json:"fromSeconds,omitempty"`
	ToSeconds   *float64 `json:"toSeconds,omitempty"`
	Reason      string   `json:"reason"`
}
