// Package digests has the names of contents that are stored and handed out by what they are, so that whoever gets one can tell
// whether it is what was asked for: sha256: and the SHA-256 of the bytes in 64 hexadecimal digits.
package digests

import (
	"encoding/hex"
	"fmt"
	"hash"
	"regexp"
	"strings"
)

const prefix = "sha256:"

var pattern = regexp.MustCompile(`^` + prefix + `[0-9a-f]{64}$`)

// Of the bytes that were written to a SHA-256 hash.
func Of(sha256 hash.Hash) string { return prefix + hex.EncodeToString(sha256.Sum(nil)) }

// Check that a text is a digest.
func Check(digest string) error {
	if !pattern.MatchString(digest) {
		return fmt.Errorf("digest %q: want sha256: and 64 hexadecimal digits in lower case", digest)
	}
	return nil
}

// File is the name of a file for what has a digest, which Check has found to be one.
func File(digest string) string { return strings.TrimPrefix(digest, prefix) }

// OfFile is the digest whose File a name is; ok is false for any other name.
func OfFile(name string) (digest string, ok bool) {
	digest = prefix + name
	return digest, pattern.MatchString(digest)
}
