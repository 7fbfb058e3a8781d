// Package doctor reports what a cluster, or this machine, lacks for the platform. It gathers facts first; the checks are pure functions.
package doctor

// State of a check.
type State string

// The states. Unknown means that the caller may not read it.
const (
	OK      State = "ok"
	Warning State = "warning"
	Missing State = "missing"
	Unknown State = "unknown"
)

// Check is one line of the report.
type Check struct {
	Name string `json:"name"`
	// Needed is set if the platform, or the demo, does not work without it.
	Needed bool  `json:"needed"`
	State  State `json:"state"`
	// Found is the present state.
	Found string `json:"found"`
	// Remedy is what to do; empty if nothing is wrong.
	Remedy string `json:"remedy,omitempty"`
}

// Report of all checks.
type Report struct {
	SchemaVersion int `json:"schemaVersion"`
	// Subject of the report: the address of a cluster, or "this machine".
	Subject string  `json:"of"`
	OK      bool    `json:"ok"`
	Checks  []Check `json:"checks"`
}

// newReport of checks. It fails only if something needed is missing.
func newReport(of string, checks []Check) Report {
	r := Report{SchemaVersion: 1, Subject: of, OK: true, Checks: checks}
	for _, c := range checks {
		r.OK = r.OK && !(c.Needed && c.State == Missing)
	}
	return r
}

// Fact may be unknown, for example if the caller may not read it.
type Fact[T any] struct {
	Value T
	// Why it is unknown; empty if it is known.
	Why string
}

func known[T any](value T) Fact[T]      { return Fact[T]{Value: value} }
func unknown[T any](why string) Fact[T] { return Fact[T]{Why: why} }

// IsUnknown reports whether the fact is unknown.
func (f Fact[T]) IsUnknown() bool { return f.Why != "" }

// check begins the check of something that is needed, or not.
func check(name string, needed bool) Check { return Check{Name: name, Needed: needed, State: OK} }

func (c Check) ok(found string) Check {
	c.Found = found
	return c
}

func (c Check) unknown(why string) Check {
	c.State, c.Found = Unknown, why
	return c
}

func (c Check) missing(found, remedy string) Check {
	c.State, c.Found, c.Remedy = Missing, found, remedy
	if !c.Needed {
		c.State = Warning
	}
	return c
}

func (c Check) warning(found, remedy string) Check {
	c.State, c.Found, c.Remedy = Warning, found, remedy
	return c
}
