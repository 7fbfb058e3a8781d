package runapi

import (
	"crypto/sha256"
	"testing"
)

// helloDigest is an example of RFC 9530, section 2 (appendix B.1): the digest of {"hello": "world"} and a line feed.
const helloDigest = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"

func TestContentDigestsAreThoseOfRFC9530(t *testing.T) {
	sum := sha256.Sum256([]byte("{\"hello\": \"world\"}\n"))
	if got := ContentDigest(sum); got != helloDigest {
		t.Errorf("digest %s; want %s", got, helloDigest)
	}
	for name, header := range map[string]string{"alone": helloDigest, "among others": "sha-512=:AAAA:, " + helloDigest + ",md5=:AA==:"} {
		if got, found, err := ParseContentDigest(header); got != sum || !found || err != nil {
			t.Errorf("%s: %x, %v, %v; want the digest", name, got, found, err)
		}
	}
	for _, header := range []string{"", "sha-512=:AAAA:", "unixsum=30637"} {
		if _, found, err := ParseContentDigest(header); found || err != nil {
			t.Errorf("%q: found %v, %v; want none", header, found, err)
		}
	}
}

func FuzzParseContentDigest(f *testing.F) {
	f.Add(helloDigest)
	f.Add("sha-256=:AAAA:")
	f.Add("sha-256=:")
	f.Fuzz(func(t *testing.T, header string) {
		sum, found, err := ParseContentDigest(header)
		if found && err != nil {
			t.Fatal("a digest and an error")
		}
		if again, known, _ := ParseContentDigest(ContentDigest(sum)); found && (!known || again != sum) {
			t.Fatalf("%x comes back as %x", sum, again)
		}
	})
}
