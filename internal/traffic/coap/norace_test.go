//go:build !race

package coap

// raceDetector skips what starts many timers in a bubble of synctest: with the race detector it may crash Go's runtime (1.26).
const raceDetector = false
