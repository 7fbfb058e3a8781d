//go:build !race

package v1

const raceDetector = false
