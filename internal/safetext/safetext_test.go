package safetext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestATerminalObeysNothingOfATextFromOutside(t *testing.T) {
	for text, want := range map[string]string{
		"plain, ünïcode 漢字 🛰\tand\n": "plain, ünïcode 漢字 🛰\tand\n",
		"\x1b[2Jgone":                `\u001b[2Jgone`,
		"title\x1b]0;owned\x07":      `title\u001b]0;owned\u0007`,
		"over\rwritten":              `over\u000dwritten`,
		"line\r\n":                   "line\n",
		"c1 \u009b31m":               `c1 \u009b31m`,
		"raw c1 \x9b31m":             `raw c1 \x9b31m`,
		"delete \x7f":                `delete \u007f`,
		"turned \u202etxt":           `turned \u202etxt`,
		"half \xe2\x82":              `half \xe2\x82`,
	} {
		if got := Terminal(text); got != want {
			t.Errorf("Terminal(%q) = %q, want %q", text, got, want)
		}
		var pieces bytes.Buffer
		w := NewWriter(&pieces)
		for i := range len(text) {
			if n, err := w.Write([]byte{text[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if want := strings.TrimSuffix(want, `\xe2\x82`); pieces.String() != want {
			t.Errorf("byte by byte %q is %q, want %q", text, pieces.String(), want)
		}
	}
}

func FuzzTerminal(f *testing.F) {
	f.Add("\x1b]8;;http://x\x1b\\\x9b\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		safe := Terminal(text)
		if strings.ContainsFunc(safe, controlsTerminal) || !utf8.ValidString(safe) || Terminal(safe) != safe {
			t.Errorf("Terminal(%q) = %q", text, safe)
		}
	})
}

func TestJSONMeansTheSameAfterwards(t *testing.T) {
	want := "a\\\u009b\x7f\u202e"
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal([]byte(Terminal(string(text))), &got); err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

func TestALongTextIsCutAndSaysItsLength(t *testing.T) {
	if exact := strings.Repeat("é", MaxCharacters); Truncate(exact) != exact {
		t.Error("a text of as many characters as may be is cut")
	}
	if got, want := Truncate(strings.Repeat("é", 10_000_000)), strings.Repeat("é", MaxCharacters)+"… (10000000 characters)"; got != want {
		t.Errorf("got %q", got)
	}
	if got := Truncate(strings.Repeat("\xff", 300)); len(got) > 300 {
		t.Errorf("got %q", got)
	}
}

func TestNoCellIsAFormulaAndNumbersStayNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`=HYPERLINK("x")`: `'=HYPERLINK("x")`, "@sum": "'@sum", "+a": "'+a", "-": "'-", "-1+1": "'-1+1", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1", "＝1": "'＝1", "-inf": "'-inf", "-1\n": "'-1\n",
		"-5": "-5", "-1.5e-3": "-1.5e-3", "+7": "+7", "": "", "nor-1/bft": "nor-1/bft", "a=b": "a=b", "'=x": "'=x",
	} {
		if got := CSVCell(text); got != want {
			t.Errorf("Cell(%q) = %q, want %q", text, got, want)
		}
	}
}
