//go:build race

package experiment

// raceDetector: every run costs several times as much, and its accesses are the same at neighbouring points of a sweep.
const raceDetector = true
