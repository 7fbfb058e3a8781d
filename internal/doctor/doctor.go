// Package doctor says what a cluster, or this machine, lacks for the platform. Facts are gathered first; the checks are pure.
package doctor

// State of a check.
type State string

// The states. Unknown is what the caller may not read.
const (
	OK      State = "ok"
	Warning State = "warning"
	Missing State = "missing"
	Unknown State = "unknown"
)

// Check is one line of the report.
type Check struct {
	Name string `json:"name"`
	// Needed tells that the platform, or the demo, does not work without it.
	Needed bool  `json:"needed"`
	State  State `json:"state"`
	// Found says what is there.
	Found string `json:"found"`
	// Remedy says what to do; empty where all is well.
	Remedy string `json:"remedy,omitempty"`
}

// Report of all checks.
type Report struct {
	SchemaVersion int `json:"schemaVersion"`
	// Of is what was looked at: the address of a cluster, or "this machine".
	Of     string  `json:"of"`
	OK     bool    `json:"ok"`
	Checks []Check `json:"checks"`
}

// reportOf checks. Only what is needed and missing fails it.
func reportOf(of string, checks []Check) Report {
	r := Report{SchemaVersion: 1, Of: of, OK: true, Checks: checks}
	for _, c := range checks {
		r.OK = r.OK && !(c.Needed && c.State == Missing)
	}
	return r
}

// Fact is something that may not be known, such as what the caller has no right to read.
type Fact[T any] struct {
	Value T
	// Why it is not known; empty where it is.
	Why string
}

func known[T any](value T) Fact[T]      { return Fact[T]{Value: value} }
func unknown[T any](why string) Fact[T] { return Fact[T]{Why: why} }

// Unread reports whether the fact is not known.
func (f Fact[T]) Unread() bool { return f.Why != "" }

// check of something that is needed, or not.
func check(name string, needed bool) Check { return Check{Name: name, Needed: needed, State: OK} }

func (c Check) fine(found string) Check {
	c.Found = found
	return c
}

func (c Check) unread(why string) Check {
	c.State, c.Found = Unknown, why
	return c
}

func (c Check) lacks(found, remedy string) Check {
	c.State, c.Found, c.Remedy = Missing, found, remedy
	if !c.Needed {
		c.State = Warning
	}
	return c
}

func (c Check) doubtful(found, remedy string) Check {
	c.State, c.Found, c.Remedy = Warning, found, remedy
	return c
}
