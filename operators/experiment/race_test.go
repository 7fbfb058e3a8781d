//go:build race

package experiment

// raceDetector makes sweeps test only some points. Each run takes several times as long, and its memory accesses are the
// same at all points. `make test-sweep` tests all points, without the race detector.
const raceDetector = true
