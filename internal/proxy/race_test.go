//go:build race

package proxy

// raceMemory is how many times the memory of a program takes with the race detector, at most (Go's documentation).
const raceMemory = 10
