// Package capture records the frames of nodes' radios as pcapng. A Tap, on the radio engine's thread, copies
// frames into a ring and never waits. A Recorder filters, writes and spools them, and ships them to the
// archive during the run. Frames without room in ring, spool or archive are dropped, counted and reported.
// Rings lie in mapped files: the next worker writes what a killed one left there.
package capture
