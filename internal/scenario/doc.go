// Package scenario holds a scenario as a function of time: the platforms' positions and the pathloss between them at any
// moment, in bounded memory. A Builder compiles it from events of the file readers in the subpackages, or of a generator.
// Open gives random access to the compiled form. README.md describes the format.
package scenario
