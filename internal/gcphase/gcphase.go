// Package gcphase keeps programs that start at one moment from collecting garbage at one moment ever after.
package gcphase

import (
	"math/rand/v2"
	"runtime"
	"time"
)

// forced is how long after its last collection Go's runtime collects garbage in a program that allocates little (runtime.forcegcperiod).
const forced = 2 * time.Minute

// Spread has the program collect once at a random moment of its first two minutes, from which on the runtime's own collections count. A run's
// hundreds of programs start together: without it each two minutes all of them would take the processors from the radio for tens of milliseconds.
func Spread() { spread(rand.N(forced), runtime.GC) }

func spread(after time.Duration, collect func()) { time.AfterFunc(after, collect) }
