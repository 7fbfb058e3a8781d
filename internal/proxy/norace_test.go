//go:build !race

package proxy

// raceMemory is 1 without the race detector.
const raceMemory = 1
