// Package golden compares what a test made with a file that was looked at and accepted.
// `go test -update` rewrites the files.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Check fails the test unless got is what testdata/name holds.
func Check(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not as accepted (-golden +made; -update accepts it):\n%s", path, diff)
	}
}

// CheckTable fails the test unless got is the table in the page at path whose first line is got's.
func CheckTable(t *testing.T, path, got string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(got, "\n")
	from := strings.Index(string(page), first+"\n")
	if from < 0 {
		t.Fatalf("%s has no table that begins with %s", path, first)
	}
	want, rest, _ := strings.Cut(string(page)[from:], "\n\n")
	if want = strings.TrimSpace(want) + "\n"; *update && want != got {
		separator := ""
		if rest != "" {
			separator = "\n"
		}
		if err := os.WriteFile(path, []byte(string(page)[:from]+got+separator+rest), 0o644); err != nil {
			t.Fatal(err)
		}
		want = got
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table in %s is not as made (-page +made; -update writes it):\n%s", path, diff)
	}
}
