package runapi

// RadioPeer is a line of a host's radio log with the field peer: what its radiod knows of another host. There is about one a second
// while both have nodes of one network.
type RadioPeer struct {
	TimeNanoseconds int64 `json:"ts"`
	// Peer is the other Kubernetes node's name.
	Peer string `json:"peer"`
	// Reachable: something arrived from it within the last second.
	Reachable bool `json:"reachable"`
	// OffsetSeconds is its real-time clock less this host's, with an error of at most UncertaintySeconds. RoundTripSeconds is
	// that of the measurement. They are absent before the first measurement.
	OffsetSeconds      *float64 `json:"offsetSeconds,omitempty"`
	UncertaintySeconds *float64 `json:"uncertaintySeconds,omitempty"`
	RoundTripSeconds   *float64 `json:"roundTripSeconds,omitempty"`
	// Transmissions sent to it since radiod began, and those that could not be sent: it was not reachable, or they came too fast.
	Sent    uint64 `json:"sent"`
	NotSent uint64 `json:"notSent,omitempty"`
	// Received transmissions of it; Late ones arrived after their time, by at most WorstLateSeconds.
	Received         uint64  `json:"received"`
	Late             uint64  `json:"late,omitempty"`
	WorstLateSeconds float64 `json:"worstLateSeconds,omitempty"`
	// MissingDatagrams of it were lost in transit. Unusable transmissions had an unknown source or network, came before its clock
	// was known, or were in a time slot that lies elsewhere by this host's clock.
	MissingDatagrams uint64 `json:"missingDatagrams,omitempty"`
	Unusable         uint64 `json:"unusable,omitempty"`
}

// RadioStealTime is a line of a host's radio log with the field stolenSeconds: the time that a hypervisor took from the host since
// the last sample. There is none for a second without steal time. It explains lateness in that time, at least in part.
type RadioStealTime struct {
	TimeNanoseconds int64 `json:"ts"`
	// StolenSeconds in which processors of the host had work and did not run, summed over all of them (steal of proc_stat(5)).
	StolenSeconds float64 `json:"stolenSeconds"`
}

// RadioLateTime is a line of a host's radio log with the field lateSeconds: a time in which frames on this host were not handled
// at their times. Frames from nodes were read late, and frames were released late, by at most LateSeconds.
type RadioLateTime struct {
	// TimeNanoseconds is when the radio had caught up; FromNanoseconds is when it was last on time.
	TimeNanoseconds int64 `json:"ts"`
	FromNanoseconds int64 `json:"fromTs"`
	// LateSeconds is the worst lateness in this time.
	LateSeconds float64 `json:"lateSeconds"`
}

// RadioMissedSlots is a line of a host's radio log with the field slotsMissedFrom: TDMA slots of a node for which its radio was too
// late. Their frames waited for the node's next slot.
type RadioMissedSlots struct {
	// TimeNanoseconds is when the next slot after the last missed one began; FromNanoseconds when the first missed one began.
	TimeNanoseconds int64  `json:"ts"`
	FromNanoseconds int64  `json:"slotsMissedFrom"`
	Network         string `json:"network"`
	Node            string `json:"node"`
	Slots           int64  `json:"slots"`
}

// RadioLateChange is a line of a host's radio log with the field changeDueTs. In this time a change of a network was due and not carried
// out. Lateness of up to 2 ms has no line.
type RadioLateChange struct {
	// TimeNanoseconds is when it was carried out; FromNanoseconds when it was due.
	TimeNanoseconds int64  `json:"ts"`
	FromNanoseconds int64  `json:"changeDueTs"`
	Network         string `json:"network"`
}

// RadioLoad is a line of a host's radio log with the field busySeconds: how busy the host was since the last sample, about once a
// second. The pressures are absent if the kernel has no pressure stall information (PSI).
type RadioLoad struct {
	TimeNanoseconds int64 `json:"ts"`
	// Seconds since the last sample.
	Seconds float64 `json:"seconds"`
	// BusySeconds of all processors of the host: all times of proc_stat(5) but idle, iowait and steal.
	BusySeconds float64 `json:"busySeconds"`
	// CPUs of the host.
	CPUs int `json:"cpus"`
	// LoadAverage is the number of tasks that ran or waited, averaged over about a minute (proc_loadavg(5)).
	LoadAverage float64 `json:"loadAverage"`
	// CPUPressureSeconds and MemoryPressureSeconds in which some task waited for a processor, or for memory.
	CPUPressureSeconds    *float64 `json:"cpuPressureSeconds,omitempty"`
	MemoryPressureSeconds *float64 `json:"memoryPressureSeconds,omitempty"`
}
