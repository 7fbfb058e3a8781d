// Package console holds the built page of the web console. Without a build of it, Files has no index.html.
package console

import "embed"

// Files of the folder dist, which the page's build fills.
//
//go:embed all:dist
var Files embed.FS
