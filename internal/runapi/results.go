package runapi

import "time"

// Results is `vignette results NAME -o json`: a stable contract. The top-level figures are those of the group `all`.
// Empty sets are null; a figure that was not computed is absent and listed in Gaps.
type Results struct {
	SchemaVersion   int        `json:"schemaVersion"`
	Experiment      string     `json:"experiment"`
	Namespace       string     `json:"namespace"`
	UID             string     `json:"uid"`
	Phase           string     `json:"phase"`
	StartTime       *time.Time `json:"startTime,omitempty"`
	DurationSeconds float64    `json:"durationSeconds"`
	Verdict         *Verdict   `json:"verdict,omitempty"`
	// Headline is the headline group: radio, or all if no delivery crosses a radio. Absent in older results.
	Headline string `json:"headline,omitempty"`
	// Warnings are findings that a headline must name, such as a client that never connected. Absent if there are none.
	Warnings []Gap    `json:"warnings,omitempty"`
	Messages Messages `json:"messages"`
	// DelaySeconds from sent to received; null if nothing was received.
	DelaySeconds *Quantiles `json:"delaySeconds"`
	// Requests are absent if there were none, and in older results.
	Requests   *RequestResults   `json:"requests,omitempty"`
	Groups     []GroupResult     `json:"groups"`
	Publishers []PublisherResult `json:"publishers"`
	// Pairs of node groups with planned deliveries, of the sender's and the receiver's node. Absent if there are more than 100, and in
	// older results.
	Pairs []PairResult `json:"pairs,omitempty"`
	// Bursts are the times of bursts by protocols. Absent unless publishers wait for their connection (phase: connected), and in older results.
	Bursts []BurstResult `json:"bursts,omitempty"`
	// Picture compares reported positions with true ones. Absent if no message reports a position, and in older results.
	Picture *PictureResult `json:"picture,omitempty"`
	// Age of information. Absent if no pair of publisher and subscriber has one, and in older results.
	Age *AgeResult `json:"age,omitempty"`
	// MessageSizes are the sizes of messages on the wire by protocol, from captures. Absent without captures of messages, and in older results.
	MessageSizes []MessageSize   `json:"messageSizes,omitempty"`
	Networks     []NetworkResult `json:"networks"`
	Gaps         []Gap           `json:"gaps"`
	// Notes name what was not requested, or cannot be measured here; nothing is missing because of them. Absent if there are none.
	Notes []Gap `json:"notes,omitempty"`
	// Hosts that carried nodes, and their load; absent if no radiod reported any.
	Hosts []HostResult `json:"hosts,omitempty"`
	// Clocks of nodes that have their own, such as virtual machines; absent if there are none.
	Clocks []ClockResult `json:"clocks,omitempty"`
	// RerunOf is the UID of the run that this one repeats with the same spec.
	RerunOf string `json:"rerunOf,omitempty"`
	// BasedOn is the UID of the run whose spec was changed to make this one.
	BasedOn string `json:"basedOn,omitempty"`
}

// AgeResult is how long ago the freshest message that has arrived was sent, over pairs of publisher and subscriber.
type AgeResult struct {
	// Pairs of publisher and subscriber; the figures are of the KnownPairs.
	Pairs      int64 `json:"pairs"`
	KnownPairs int64 `json:"knownPairs"`
	// MeanSeconds of the pairs' means over time.
	MeanSeconds float64 `json:"meanSeconds"`
	MaxSeconds  float64 `json:"maxSeconds"`
}

// MessageSize is the size of a protocol's messages on the wire: all bytes of the frames that carried one from the node that sent it, without FCS.
type MessageSize struct {
	Protocol string `json:"protocol"`
	// Messages that were captured, each as often as it was sent.
	Messages    int64   `json:"messages"`
	MedianBytes float64 `json:"medianBytes"`
}

// BurstResult is how long bursts took from publishers of one protocol to subscribers of another.
type BurstResult struct {
	PublisherProtocol  string `json:"publisherProtocol"`
	SubscriberProtocol string `json:"subscriberProtocol"`
	// Bursts is the number of pairs of publisher and subscriber, and Messages that of their messages, also of those never sent.
	Bursts   int64 `json:"bursts"`
	Messages int64 `json:"messages"`
	Received int64 `json:"received"`
	// ConnectedSeconds from a publisher's start to its first message, and Seconds to the arrival of its last one, on average. ConnectedSeconds
	// is null without a message, and Seconds if one is missing.
	ConnectedSeconds *float64 `json:"connectedSeconds"`
	Seconds          *float64 `json:"seconds"`
}

// PictureResult is how old and how far off the positions were that subscribers had of other nodes.
type PictureResult struct {
	// SampleSeconds from one sample to the next.
	SampleSeconds int64 `json:"sampleSeconds"`
	// Groups of the nodes that report their positions; the first is all.
	Groups []PictureGroup `json:"groups"`
}

// PictureGroup has the figures of the nodes of a group, at all subscribers on other nodes.
type PictureGroup struct {
	Name string `json:"name"`
	// Pairs of a subscriber and a node, and Samples of all of them.
	Pairs   int64 `json:"pairs"`
	Samples int64 `json:"samples"`
	// KnownPercent of the samples, in which the subscriber had a position of the node.
	KnownPercent float64 `json:"knownPercent"`
	// ErrorMetres is the horizontal distance from the freshest position received to the true one; null if none was received.
	ErrorMetres *PictureFigures `json:"errorMetres"`
	// AgeSeconds since that position was made; null if none was received.
	AgeSeconds *PictureFigures `json:"ageSeconds"`
}

// PictureFigures are over the samples in which a position was known.
type PictureFigures struct {
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

// ClockResult is how well a node's own clock followed the server's, from before its first app started.
type ClockResult struct {
	Node string `json:"node"`
	// WorstOffsetSeconds from the server's clock, without its sign, and WorstUncertaintySeconds of the measurements. Delays to
	// and from other nodes may be wrong by their sum.
	WorstOffsetSeconds      float64 `json:"worstOffsetSeconds"`
	WorstUncertaintySeconds float64 `json:"worstUncertaintySeconds"`
	// SetSeconds is by how much the clock was set before the first app started.
	SetSeconds   float64 `json:"setSeconds"`
	Measurements int     `json:"measurements"`
}

// HostResult is a host's load from T0 to the end of the drain, whatever caused it.
type HostResult struct {
	Name string `json:"name"`
	CPUs int    `json:"cpus"`
	// BusyPercent of all processors on average, and MaxBusyPercent in the busiest second.
	BusyPercent    float64 `json:"busyPercent"`
	MaxBusyPercent float64 `json:"maxBusyPercent"`
	// MaxLoadAverage of a minute.
	MaxLoadAverage float64 `json:"maxLoadAverage"`
	// StolenSeconds that a hypervisor took, summed over all processors.
	StolenSeconds float64 `json:"stolenSeconds"`
	// CPUPressurePercent and MemoryPressurePercent of the time some task waited for a processor, or for memory; absent if the
	// kernel does not report them.
	CPUPressurePercent    *float64 `json:"cpuPressurePercent,omitempty"`
	MemoryPressurePercent *float64 `json:"memoryPressurePercent,omitempty"`
}

// Verdict says how far the figures may be off because the emulation was late, and whether that is within the spec's tolerances.
type Verdict struct {
	// KeptUp reports whether every bound of the headline group is within its tolerance.
	KeptUp bool `json:"keptUp"`
	// Exceeded has a sentence for each tolerance that was exceeded.
	Exceeded []string `json:"exceeded,omitempty"`
	// Tolerances that were applied, and Bounds of the headline group. Bounds are absent without logged messages, and in older results.
	Tolerances *Tolerances `json:"tolerances,omitempty"`
	Bounds     *Bounds     `json:"bounds,omitempty"`
	// Networks have counts of late frames and missed TDMA slots.
	Networks []NetworkTiming `json:"networks,omitempty"`
	// Actions are the starts and stops of apps.
	Actions *ActionTiming `json:"actions,omitempty"`
	// Late has the worst moments, at most MaxLate of them, in order of time.
	Late []Late `json:"late"`
	// Context has sentences on steal time, CPU pressure and throttling. They do not affect the verdict.
	Context []string `json:"context,omitempty"`
}

// MaxLate entries of Verdict.Late.
const MaxLate = 50

// Tolerances of a verdict.
type Tolerances struct {
	// MedianPercent and P95Percent of the delay, or LeastSeconds if that is more.
	MedianPercent float64 `json:"medianPercent"`
	P95Percent    float64 `json:"p95Percent"`
	LeastSeconds  float64 `json:"leastSeconds"`
	// DeliveredPoints of the delivered share, percentage points.
	DeliveredPoints float64 `json:"deliveredPoints"`
}

// Bounds are the values that a group's figures may have had without lateness. Each interval contains the measured value.
type Bounds struct {
	// DelaySeconds by the name of the quantile (min, p25, median, mean, p75, p95, max); null if nothing was received.
	DelaySeconds map[string]Interval `json:"delaySeconds"`
	// DeliveredPercent is null if nothing was offered.
	DeliveredPercent *Interval `json:"deliveredPercent"`
	// Marked deliveries were in flight while the emulation was late; MarkedLost of them were lost.
	Marked     int64 `json:"marked"`
	MarkedLost int64 `json:"markedLost"`
}

// NetworkTiming says how punctual a network's emulation was from T0 to the end of the drain.
type NetworkTiming struct {
	Name string `json:"name"`
	// Frames that were released, and Late ones of them, by more than 2 ms.
	Frames       int64   `json:"frames"`
	Late         int64   `json:"late"`
	WorstSeconds float64 `json:"worstSeconds"`
	// Lost frames were dropped by the emulation itself, not by the radio model.
	Lost int64 `json:"lost"`
	// LateInterference are receptions that would have failed had a transmission of another host or network been known in time.
	LateInterference int64 `json:"lateInterference,omitempty"`
	// Slots of TDMA that were used, and Missed ones, with how late the worst was.
	Slots            int64   `json:"slots,omitempty"`
	Missed           int64   `json:"missed,omitempty"`
	WorstSlotSeconds float64 `json:"worstSlotSeconds,omitempty"`
	// Lateness is a histogram of how late frames were released.
	Lateness []LatenessBucket `json:"lateness,omitempty"`
}

// LatenessBucket counts frames that were later than the previous bucket and at most UpToSeconds; null means no limit.
type LatenessBucket struct {
	UpToSeconds *float64 `json:"upToSeconds"`
	Frames      int64    `json:"frames"`
}

// ActionTiming says how punctual the starts and stops of apps were.
type ActionTiming struct {
	Actions int64 `json:"actions"`
	// Late by more than 10 ms.
	Late         int64   `json:"late"`
	WorstSeconds float64 `json:"worstSeconds"`
}

// Late names a moment at which the emulation was late.
type Late struct {
	Node         string  `json:"node"`
	FromSeconds  float64 `json:"fromSeconds"`
	ToSeconds    float64 `json:"toSeconds"`
	What         string  `json:"what"`
	WorstSeconds float64 `json:"worstSeconds"`
}

// Messages counts messages and deliveries. Expected counts each message once per other instance that subscribes to it;
// Received, Lost and Duplicates are of those deliveries.
type Messages struct {
	// Triggered messages are those that apps wanted to send. Absent in older results.
	Triggered *int64 `json:"triggered,omitempty"`
	Sent      int64  `json:"sent"`
	// Offered counts the deliveries to expect if every triggered message had been sent; DeliveredPercent of them arrived.
	// Headlines have these. Absent in older results; DeliveredPercent also if nothing was offered.
	Offered          *int64   `json:"offered,omitempty"`
	DeliveredPercent *float64 `json:"deliveredPercent,omitempty"`
	Expected         int64    `json:"expected"`
	Received         int64    `json:"received"`
	Lost             int64    `json:"lost"`
	LostPercent      float64  `json:"lostPercent"`
	Duplicates       int64    `json:"duplicates"`
	// NeverSent counts messages that were triggered and never sent; no other count has them. Absent in older results.
	NeverSent *int64 `json:"neverSent,omitempty"`
}

// Counted returns triggered messages and offered deliveries. For older results these are at least the sent and expected ones.
func (m *Messages) Counted() (triggered, offered int64) {
	triggered, offered = m.Sent, m.Expected
	if m.Triggered != nil {
		triggered = *m.Triggered
	}
	if m.Offered != nil {
		offered = *m.Offered
	}
	return triggered, offered
}

// Confidence has intervals that cover the true value with the probability Level, if deliveries were independent:
// the median's by the bootstrap, the mean's by Student's t corrected for skewness, those of shares by Wilson's score. MedianSeconds and
// MeanSeconds are null for too few deliveries, MeanSeconds also in older results, LostPercent if nothing was expected. DeliveredPercent is
// of offered deliveries; absent if nothing was offered, and in older results.
type Confidence struct {
	Level            float64   `json:"level"`
	MedianSeconds    *Interval `json:"medianSeconds"`
	MeanSeconds      *Interval `json:"meanSeconds"`
	LostPercent      *Interval `json:"lostPercent"`
	DeliveredPercent *Interval `json:"deliveredPercent,omitempty"`
}

// RequestResults are figures of requests: messages whose sender waits for a response, the receipt.
type RequestResults struct {
	// Triggered requests are those that apps wanted to send, Sent those that were handed to the socket or library. Each has a receipt, has failed,
	// or is outstanding.
	Triggered int64 `json:"triggered"`
	Sent      int64 `json:"sent"`
	// Receipts came before the end of the drain: ReceiptPercent of the triggered requests.
	Receipts       int64   `json:"receipts"`
	ReceiptPercent float64 `json:"receiptPercent"`
	// Failed requests by reason: those of request.Reasons, or other. Null if none failed.
	Failed map[string]int64 `json:"failed"`
	// Outstanding requests had neither a receipt nor a failure at the end of the drain.
	Outstanding int64 `json:"outstanding"`
	// Retransmissions of requests, or of blocks of them, by the protocol itself. Null over TCP, whose own are in captures, unless the
	// protocol repeated some.
	Retransmissions *int64 `json:"retransmissions"`
	// ResponseSeconds from sent to the receipt; null without receipts.
	ResponseSeconds *Quantiles         `json:"responseSeconds"`
	Confidence      *RequestConfidence `json:"confidence"`
}

// RequestConfidence has the intervals of Confidence for requests. Those of response times are null for too few receipts.
type RequestConfidence struct {
	Level          float64   `json:"level"`
	ReceiptPercent *Interval `json:"receiptPercent"`
	MedianSeconds  *Interval `json:"medianSeconds"`
	MeanSeconds    *Interval `json:"meanSeconds"`
}

// FailedCount is the number of failed requests.
func (r *RequestResults) FailedCount() (count int64) {
	for _, n := range r.Failed {
		count += n
	}
	return count
}

// Interval from Low to High, in the unit of its value.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Quantiles of delays in seconds, by linear interpolation.
type Quantiles struct {
	Min    float64 `json:"min"`
	P25    float64 `json:"p25"`
	Median float64 `json:"median"`
	// Mean and P95 are absent in older results.
	Mean *float64 `json:"mean,omitempty"`
	P75  float64  `json:"p75"`
	P95  *float64 `json:"p95,omitempty"`
	Max  float64  `json:"max"`
}

// GroupResult is the result of a group of deliveries: all; radio, between different nodes; local, which never left a node's
// namespace; cross, between nodes of different groups; or a node group's name, by the publisher's node.
type GroupResult struct {
	Name         string     `json:"name"`
	Messages     Messages   `json:"messages"`
	DelaySeconds *Quantiles `json:"delaySeconds"`
	// Confidence is absent in older results.
	Confidence *Confidence `json:"confidence,omitempty"`
	// Requests are absent if there were none, and in older results.
	Requests *RequestResults `json:"requests,omitempty"`
	// Bounds are absent in older results, and if the emulation was not judged.
	Bounds *Bounds `json:"bounds,omitempty"`
}

// PairResult is the result of the deliveries from one node group to another, or within one.
type PairResult struct {
	From         string          `json:"from"`
	To           string          `json:"to"`
	Messages     Messages        `json:"messages"`
	DelaySeconds *Quantiles      `json:"delaySeconds"`
	Confidence   *Confidence     `json:"confidence"`
	Requests     *RequestResults `json:"requests,omitempty"`
}

// PublisherResult is the result of one publishing instance.
type PublisherResult struct {
	Name         string     `json:"name"`
	Node         string     `json:"node"`
	Messages     Messages   `json:"messages"`
	DelaySeconds *Quantiles `json:"delaySeconds"`
	// Confidence is absent in older results.
	Confidence *Confidence `json:"confidence,omitempty"`
	// Requests are absent if there were none, and in older results.
	Requests *RequestResults `json:"requests,omitempty"`
}

// NetworkResult is the data volume of one network.
type NetworkResult struct {
	Name string `json:"name"`
	// BytesPerSecond of L2 bytes handed to radios, each frame once, from the first start to the end of the drain.
	BytesPerSecond        *float64           `json:"bytesPerSecond,omitempty"`
	ByLayer               map[string]float64 `json:"byLayer,omitempty"`
	RoutingBytesPerSecond *float64           `json:"routingBytesPerSecond,omitempty"`
	TCP                   *TCPResult         `json:"tcp,omitempty"`
	// Frames of all its radios in the same time. Absent in older results, and if no radio was sampled.
	Frames *NetworkFrames `json:"frames,omitempty"`
	// Hops of routes, and SINRDB of links. Absent if radiod knew none, and in older results.
	Hops   *NetworkHops `json:"hops,omitempty"`
	SINRDB *NetworkSINR `json:"sinrDB,omitempty"`
	// Captured is the part of the traffic that captures cover; absent if that is all of it, or nothing.
	Captured *Captured `json:"captured,omitempty"`
}

// NetworkFrames are sent once per transmission, and received once per receiver.
type NetworkFrames struct {
	Sent     int64 `json:"sent"`
	Received int64 `json:"received"`
	// Drops by the reasons of docs/reference/radio/metrics.md.
	Drops map[string]int64 `json:"drops"`
}

// NetworkHops are over all ordered pairs of nodes and seconds.
type NetworkHops struct {
	// Mean and Max of the routes; null if there was none.
	Mean                *float64 `json:"mean"`
	Max                 *int64   `json:"max"`
	WithoutRoutePercent float64  `json:"withoutRoutePercent"`
}

// NetworkSINR has quantiles of each link's median SINR in dB.
type NetworkSINR struct {
	Links  int64   `json:"links"`
	P5     float64 `json:"p5"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
}

// Captured names the part of a network's traffic that captures cover: what these nodes sent in this time after T0.
type Captured struct {
	Nodes       []string `json:"nodes"`
	FromSeconds float64  `json:"fromSeconds"`
	ToSeconds   float64  `json:"toSeconds"`
}

// TCPResult has counts as Wireshark defines them.
type TCPResult struct {
	Retransmissions int64 `json:"retransmissions"`
	Spurious        int64 `json:"spurious"`
	DuplicateAcks   int64 `json:"duplicateAcks"`
}

// Gap is something that is missing from the results, with the reason.
type Gap struct {
	What        string   `json:"what"`
	Node        string   `json:"node,omitempty"`
	FromSeconds *float64 `json:"fromSeconds,omitempty"`
	ToSeconds   *float64 `json:"toSeconds,omitempty"`
	Reason      string   `json:"reason"`
}
