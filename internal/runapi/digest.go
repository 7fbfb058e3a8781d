package runapi

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// DigestHeader is the header with a body's digest (RFC 9530, section 2). A body that does not match is refused with status 422
// and must be sent again.
const DigestHeader = "Content-Digest"

const (
	digestPrefix = "sha-256=:"
	digestSuffix = ":"
)

// ContentDigest is the value of DigestHeader for a body with this SHA-256.
func ContentDigest(sum [sha256.Size]byte) string {
	return digestPrefix + base64.StdEncoding.EncodeToString(sum[:]) + digestSuffix
}

// ParseContentDigest finds the SHA-256 in a DigestHeader; found is false if there is none, even if there are other digests.
func ParseContentDigest(header string) (sum [sha256.Size]byte, found bool, err error) {
	for member := range strings.SplitSeq(header, ",") {
		text, ours := strings.CutPrefix(strings.TrimSpace(member), digestPrefix)
		if !ours {
			continue
		}
		encoded, whole := strings.CutSuffix(text, digestSuffix)
		decoded, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !whole || len(decoded) != len(sum) {
			return sum, false, fmt.Errorf("%s %q: want sha-256=:DIGEST: with %d bytes in base64", DigestHeader, header, len(sum))
		}
		return [sha256.Size]byte(decoded), true, nil
	}
	return sum, false, nil
}
