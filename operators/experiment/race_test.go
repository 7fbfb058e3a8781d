//go:build race

package experiment

// raceDetector: every run costs several times as much, and its accesses are the same at all points of a sweep: some worlds side by side
// show what there is. make test-sweep goes over all points, without it.
const raceDetector = true
