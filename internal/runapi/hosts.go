package runapi

// RadioPeer is a line of a host's radio log, told apart by its field peer: what its radiod knows of another host's, about once
// a second while both have nodes of one network.
type RadioPeer struct {
	TimeNanoseconds int64 `json:"ts"`
	// Peer is the other Kubernetes node's name.
	Peer string `json:"peer"`
	// Reachable: something has come from it within the last second.
	Reachable bool `json:"reachable"`
	// OffsetSeconds is its real-time clock less this host's, and differs from what it really is by no more than
	// UncertaintySeconds; RoundTripSeconds is that of the exchange it was measured by. They are absent where nothing was measured yet.
	OffsetSeconds      *float64 `json:"offsetSeconds,omitempty"`
	UncertaintySeconds *float64 `json:"uncertaintySeconds,omitempty"`
	RoundTripSeconds   *float64 `json:"roundTripSeconds,omitempty"`
	// Transmissions sent to it since radiod began, and those that could not be: it was not reachable, or they came too fast.
	Sent    uint64 `json:"sent"`
	NotSent uint64 `json:"notSent,omitempty"`
	// Received transmissions of it; Late are those that came after the time at which they were due, by at most WorstLateSeconds.
	Received         uint64  `json:"received"`
	Late             uint64  `json:"late,omitempty"`
	WorstLateSeconds float64 `json:"worstLateSeconds,omitempty"`
	// MissingDatagrams of its were lost on the way; Unusable transmissions had a source or network that was not known here (yet), came
	// before its clock was known, or in a time slot that lies elsewhere by this host's clock.
	MissingDatagrams uint64 `json:"missingDatagrams,omitempty"`
	Unusable         uint64 `json:"unusable,omitempty"`
}

// RadioStealTime is a line of a host's radio log, told apart by its field stolenSeconds: what a hypervisor took from the host since the
// last sample. There is none for a second in which it took nothing. What is late then was late for that, at least in part.
type RadioStealTime struct {
	TimeNanoseconds int64 `json:"ts"`
	// StolenSeconds in which processors of the host had work and did not run, added over all of them (steal of proc_stat(5)).
	StolenSeconds float64 `json:"stolenSeconds"`
}

// RadioLateTime is a line of a host's radio log, told apart by its field lateSeconds: a time in which frames on this host were not handled when they
// were due. Frames that nodes sent meanwhile were read late, and those that were due were released late, by at most LateSeconds.
type RadioLateTime struct {
	// TimeNanoseconds is when the radio had caught up; FromNanoseconds is when it was last on time.
	TimeNanoseconds int64 `json:"ts"`
	FromNanoseconds int64 `json:"fromTs"`
	// LateSeconds is the worst lateness that was seen in this time.
	LateSeconds float64 `json:"lateSeconds"`
}

// RadioMissedSlots is a line of a host's radio log, told apart by its field slotsMissedFrom: TDMA slots of a node that its radio was too late for.
// What was to go in them waited for the node's next slot.
type RadioMissedSlots struct {
	// TimeNanoseconds is when the node's next slot began after the last missed one; FromNanoseconds when the first missed one began.
	TimeNanoseconds int64  `json:"ts"`
	FromNanoseconds int64  `json:"slotsMissedFrom"`
	Network         string `json:"network"`
	Node            string `json:"node"`
	Slots           int64  `json:"slots"`
}

// RadioLoad is a line of a host's radio log, told apart by its field busySeconds: how busy the host was since the last sample, about
// once a second. Of a kernel without pressure stall information (PSI) the pressures are absent.
type RadioLoad struct {
	TimeNanoseconds int64 `json:"ts"`
	// Seconds since the last sample.
	Seconds float64 `json:"seconds"`
	// BusySeconds in which processors of the host did something, added over all of them: all times of proc_stat(5) but idle, iowait
	// and steal.
	BusySeconds float64 `json:"busySeconds"`
	// CPUs that the host has.
	CPUs int `json:"cpus"`
	// LoadAverage is the number of tasks that ran or waited, averaged over about a minute (proc_loadavg(5)).
	LoadAverage float64 `json:"loadAverage"`
	// CPUPressureSeconds and MemoryPressureSeconds in which some task waited for a processor, or for memory.
	CPUPressureSeconds    *float64 `json:"cpuPressureSeconds,omitempty"`
	MemoryPressureSeconds *float64 `json:"memoryPressureSeconds,omitempty"`
}
