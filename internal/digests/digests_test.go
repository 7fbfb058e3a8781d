package digests

import (
	"crypto/sha256"
	"strings"
	"testing"
)

// ofNothing is the SHA-256 of no bytes (FIPS 180-4).
const ofNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestADigestNamesAFileAndTheFileTheDigest(t *testing.T) {
	digest := Of(sha256.New())
	if digest != "sha256:"+ofNothing || Check(digest) != nil || File(digest) != ofNothing {
		t.Errorf("no bytes have the digest %s (%v) and the file %s; want sha256:%s", digest, Check(digest), File(digest), ofNothing)
	}
	if back, ok := OfFile(File(digest)); !ok || back != digest {
		t.Errorf("the file is of %s, %v", back, ok)
	}
}

func TestWhatIsNoDigestIsRefusedAndNamed(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "no prefix": ofNothing, "another hash": "sha512:" + ofNothing, "capitals": "sha256:" + strings.ToUpper(ofNothing), "too short": "sha256:" + ofNothing[1:],
		"too long": "sha256:" + ofNothing + "0", "a path": "sha256:../" + ofNothing[3:], "a line behind it": "sha256:" + ofNothing + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check(text); err == nil || !strings.Contains(err.Error(), "want sha256: and 64 hexadecimal digits") {
				t.Errorf("Check says %v", err)
			}
			if digest, ok := OfFile(File(text)); ok && digest == text {
				t.Errorf("%q is taken for a file's digest", text)
			}
		})
	}
}
