// Package waveforms holds the library of waveforms that the chart installs.
package waveforms

import "embed"

// Files are Waveform objects, one YAML file each, named after the waveform.
//
//go:embed *.yaml
var Files embed.FS
