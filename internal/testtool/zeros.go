package testtool

import (
	"bytes"

	"vignette.dev/vignette/internal/gz"
)

// GzipOfZeros returns a gzip file of n zero bytes. It has many members of the same content: packing them anew takes the race
// detector half a minute.
func GzipOfZeros(n int) []byte {
	const member = 1 << 20
	packed := bytes.Repeat(gz.Append(nil, make([]byte, member)), n/member)
	return gz.Append(packed, make([]byte, n%member))
}
