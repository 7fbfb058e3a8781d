// Package core has what controllers, server, CLI and validator share. It imports none of them.
package core
