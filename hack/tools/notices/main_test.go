package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const isc = `Copyright (c) 2013 Somebody

Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`

func TestALicenceIsFoundByItsText(t *testing.T) {
	if got := detect(map[string]string{"LICENSE": isc, "NOTICE": "Made by Somebody"}); got != "ISC" {
		t.Errorf("licence %q; want ISC", got)
	}
}

func TestLicencesThatAreNotAcceptedAreNamed(t *testing.T) {
	for licence, want := range map[string]string{"ISC": "", "Apache-2.0 OR MIT": "", "GPL-3.0-only": "is under GPL-3.0-only", "MIT AND AGPL-3.0": "AGPL-3.0", "": "no licence",
		"EPL-2.0 OR GPL-3.0-or-later": "", "GPL-2.0-only OR GPL-3.0-only": "GPL-3.0-only", "(MIT OR GPL-3.0-only) AND AGPL-3.0": "AGPL-3.0"} {
		err := check([]work{{name: "example.org/x", version: "v1.0.0", licence: licence}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", licence, err, want)
		}
	}
}

func TestAPythonPackageIsFoundByItsMetadata(t *testing.T) {
	site := t.TempDir()
	for name, text := range map[string]string{
		"site/My_Pkg-1.0.dist-info/METADATA":         "Name: My.Pkg\nLicense-Expression: MIT\n\nAbout.\n",
		"site/My_Pkg-1.0.dist-info/licenses/LICENSE": "text",
		"lock": "my-pkg==1.0 \\\n    --hash=sha256:0\n", "more": "other==2\n",
	} {
		path := filepath.Join(site, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := pythonPackages(filepath.Join(site, "lock"), filepath.Join(site, "site"))
	if err != nil || len(found) != 1 || found[0].licence != "MIT" || found[0].texts["LICENSE"] != "text" {
		t.Errorf("%+v, %v; want one package under MIT with its text", found, err)
	}
	if _, err := pythonPackages(filepath.Join(site, "more"), filepath.Join(site, "site")); err == nil || !strings.Contains(err.Error(), "other 2 is not installed") {
		t.Errorf("%v; want an error about the package that is not installed", err)
	}
}

func TestOnlyNpmPackagesThatEndInTheConsoleAreListed(t *testing.T) {
	console := t.TempDir()
	lock := `{"packages": {"": {"version": "0"}, "node_modules/a": {"version": "1", "license": "MIT"}, "node_modules/a/node_modules/@x/b": {"version": "2", "license": "ISC"},
		"node_modules/builds": {"version": "3", "dev": true}, "node_modules/@types/a": {"version": "4"}}}`
	if err := os.WriteFile(filepath.Join(console, "package-lock.json"), []byte(lock), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := npmPackages(console); err == nil || !strings.Contains(err.Error(), "is not installed") {
		t.Errorf("%v; want an error about packages that are not installed", err)
	}
	inner := filepath.Join(console, "node_modules/a/node_modules/@x/b")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inner, "LICENSE"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := npmPackages(console)
	if err != nil || len(found) != 2 || found[0].name != "a" || found[0].licence != "MIT" || found[1].name != "@x/b" || found[1].texts["LICENSE"] != "text" {
		t.Errorf("%+v, %v; want a under MIT and @x/b with its text", found, err)
	}
}

func TestATextIsPrintedOnceWithAllItBelongsTo(t *testing.T) {
	var out strings.Builder
	a, b := work{name: "a", texts: map[string]string{"LICENSE": "same\n"}}, work{name: "b", texts: map[string]string{"LICENSE": "same"}}
	if err := write(&out, []work{a}, []work{b}, nil); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "same") != 1 || !strings.Contains(got, "a\nb\n\nsame") {
		t.Errorf("%s\nwant the text once, below both names", got)
	}
}
