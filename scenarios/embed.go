// Package scenarios holds the experiments and campaigns of this folder, for programs that offer them.
package scenarios

import "embed"

// Files are those of this folder.
//
//go:embed *
var Files embed.FS
