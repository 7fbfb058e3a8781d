package compile

import (
	"fmt"
	"io"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// MaxServedBytes limits the unpacked sources of a scenario that the shared operator compiles, as they are in memory.
const MaxServedBytes = 256 << 20

// TooLargeError says that sources have too many unpacked bytes, and what compiles them.
type TooLargeError struct {
	most    int64
	instead string
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("with it the sources have more than %d MiB when unpacked: %s", e.most>>20, e.instead)
}

// Served opens sources as the operator does: up to MaxServedBytes.
func Served(open Open) Open {
	return Limited(open, MaxServedBytes, `compile them with "vignette scenario push"`)
}

// Limited opens sources until they have more than so many unpacked bytes together. It leaves errors of unpacking to the compiler.
func Limited(open Open, most int64, instead string) Open {
	left := most
	return func(source v1alpha1.ScenarioSource) ([]byte, error) {
		content, err := open(source)
		if err != nil {
			return nil, err
		}
		if unpacked, err := Unpack(source.Key, content); err == nil {
			size, _ := io.Copy(io.Discard, io.LimitReader(unpacked, left+1))
			left -= size
		}
		if left < 0 {
			return nil, &TooLargeError{most, instead}
		}
		return content, nil
	}
}
