// Package capture records the frames of nodes' radios as pcapng. A Tap, on the radio engine's thread, copies frames
// into a ring and never waits; a Recorder filters, writes and spools them and ships them to the archive while the run
// goes on. What the ring, the spool or the archive has no room for is dropped, counted and named.
//
// ParseFilter and CheckFilter know the filters' language and need nothing of the rest.
package capture
