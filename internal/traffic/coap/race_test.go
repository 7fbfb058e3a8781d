//go:build race

package coap

const raceDetector = true
