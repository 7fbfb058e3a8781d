// Package utf8text reads text files as other programs write them: with or without a byte order mark, in UTF-8 or UTF-16.
package utf8text

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
)

var (
	mark             = []byte("\xef\xbb\xbf")
	markLittleEndian = []byte("\xff\xfe")
	markBigEndian    = []byte("\xfe\xff")
)

// NewReader of a text without its mark. A mark of UTF-16 says that the text is decoded; all else is passed on as it is.
func NewReader(r io.Reader) io.Reader {
	buffered := bufio.NewReader(r)
	begin, _ := buffered.Peek(len(mark)) // what is wrong is said when the text is read
	switch {
	case bytes.HasPrefix(begin, mark):
		_, _ = buffered.Discard(len(mark))
	case bytes.HasPrefix(begin, markLittleEndian), bytes.HasPrefix(begin, markBigEndian):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Reader(buffered)
	}
	return buffered
}

// Declared decodes a text whose declaration names its encoding; it is the CharsetReader of an XML decoder. A declaration of UTF-16
// that can be read without decoding is wrong: NewReader has decoded the text.
func Declared(label string, r io.Reader) (io.Reader, error) {
	if strings.HasPrefix(strings.ToLower(label), "utf-16") {
		return r, nil
	}
	decoded, err := charset.NewReaderLabel(label, r)
	if err != nil {
		return nil, fmt.Errorf("the encoding %q is not known: want one such as UTF-8, ISO-8859-1 or windows-1252", label)
	}
	return decoded, nil
}
