package utf8text_test

import (
	"io"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/utf8text"
)

func TestMarksAndUTF16AreTakenOff(t *testing.T) {
	for name, text := range map[string]string{
		"plain":                "é1",
		"UTF-8 with a mark":    "\xef\xbb\xbfé1",
		"UTF-16 little-endian": "\xff\xfe\xe9\x001\x00",
		"UTF-16 big-endian":    "\xfe\xff\x00\xe9\x001",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := io.ReadAll(utf8text.NewReader(strings.NewReader(text))); string(got) != "é1" || err != nil {
				t.Errorf("it reads %q, %v", got, err)
			}
		})
	}
}

func TestADeclaredEncodingIsDecoded(t *testing.T) {
	r, err := utf8text.Declared("ISO-8859-1", strings.NewReader("\xe9"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(r); string(got) != "é" {
		t.Errorf("it reads %q", got)
	}
	if _, err := utf8text.Declared("klingon", strings.NewReader("")); err == nil || !strings.Contains(err.Error(), `"klingon" is not known`) {
		t.Errorf("error is %v", err)
	}
}
