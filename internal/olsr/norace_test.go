//go:build !race

package olsr_test

const raceDetector = false
