// Package scenario holds a scenario as a function of time: where platforms are and what pathloss lies between them, at any
// moment, in bounded memory. A Builder compiles it from what the readers in the subpackages find in files, or from a generator;
// Open gives random access to the compiled form. See README.md for the format.
package scenario
