// notices writes NOTICE: the parts of the programs, of the web console and of the analysis image, their licences, and the texts that
// go with the programs. It fails for a licence that the project does not accept.
//
//	notices --lock requirements.lock --site-packages DIR --console DIR PACKAGE...
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// accepted licences let anybody use, change and pass on the combined work under the Apache License.
var accepted = []string{"Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD", "MPL-2.0", "Zlib", "PSF-2.0", "Python-2.0", "HPND", "MIT-CMU",
	"Unlicense", "CC0-1.0", "OFL-1.1", "EPL-2.0"}

// reviewed are works whose files name more licences than apply, with the result of a manual review.
var reviewed = map[string]string{
	"scipy": "BSD-3-Clause; its wheels contain OpenBLAS (BSD-3-Clause), and libgfortran and libquadmath with the exception for GCC's runtime libraries",
}

// work is an external module or package.
type work struct {
	name, version string
	licence       string
	// The texts of licences and notices, by file name.
	texts map[string]string
}

func main() {
	lock := flag.String("lock", "", "file with the Python packages, as pip-compile writes it")
	site := flag.String("site-packages", "", "folder in which they are installed")
	console := flag.String("console", "", "folder with package-lock.json and the packages that it lists, installed")
	flag.Parse()
	if err := run(*lock, *site, *console, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(lock, site, console string, packages []string, out io.Writer) error {
	modules, err := goModules(packages)
	if err != nil {
		return err
	}
	python, err := pythonPackages(lock, site)
	if err != nil {
		return err
	}
	npm, err := npmPackages(console)
	if err != nil {
		return err
	}
	if err := check(slices.Concat(modules, npm, python)); err != nil {
		return err
	}
	return write(out, modules, npm, python)
}

// check checks that every licence is accepted.
func check(works []work) error {
	var errs []error
	for _, w := range works {
		if reviewed[w.name] != "" {
			continue
		}
		for _, licence := range notAccepted(w.licence) {
			errs = append(errs, fmt.Errorf("%s %s is under %s, which is not among the accepted licences", w.name, w.version, licence))
		}
		if w.licence == "" {
			errs = append(errs, fmt.Errorf("%s %s: no licence found", w.name, w.version))
		}
	}
	return errors.Join(errs...)
}

// notAccepted returns the licences of an SPDX expression that would have to be accepted and are not.
// Of licences between which one may choose, one accepted is enough.
func notAccepted(expression string) (ids []string) {
	licences := regexp.MustCompile(`[\w.+-]+`).FindAllString(expression, -1)
	isAccepted := func(id string) bool { return slices.Contains(accepted, id) }
	choice := slices.Contains(licences, "OR") && !slices.Contains(licences, "AND")
	if choice && slices.ContainsFunc(licences, isAccepted) {
		return nil
	}
	for _, id := range licences {
		if id != "AND" && id != "OR" && id != "WITH" && !isAccepted(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// goModules returns the modules of packages, without the packages' own module.
func goModules(packages []string) ([]work, error) {
	command := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, packages...)...)
	command.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	works := map[string]work{}
	for decoder := json.NewDecoder(bytes.NewReader(listed)); ; {
		var p struct {
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if m := p.Module; m != nil && !m.Main && works[m.Path].name == "" {
			w := work{name: m.Path, version: m.Version}
			if w.texts, err = texts(m.Dir); err != nil {
				return nil, err
			}
			w.licence = detect(w.texts)
			works[m.Path] = w
		}
	}
	return sorted(works), nil
}

// legal are the files with licences and notices.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([.-].*)?$`)

func texts(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, e := range entries {
		if e.IsDir() || !legal.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		found[e.Name()] = strings.ReplaceAll(string(text), "\r\n", "\n")
	}
	return found, nil
}

// detect detects licences by their texts.
func detect(texts map[string]string) string {
	var ids []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if isNotice(name) {
			continue
		}
		for _, m := range licensecheck.Scan([]byte(texts[name])).Match {
			if !m.IsURL && !slices.Contains(ids, m.ID) {
				ids = append(ids, m.ID)
			}
		}
	}
	return strings.Join(ids, " AND ")
}

func isNotice(name string) bool { return strings.HasPrefix(strings.ToLower(name), "notice") }

// pinned matches a line of a lock.
var pinned = regexp.MustCompile(`^([\w.-]+)==([\w.!+-]+)`)

// pythonPackages returns a lock's packages as they are installed.
func pythonPackages(lock, site string) ([]work, error) {
	text, err := os.ReadFile(lock)
	if err != nil {
		return nil, err
	}
	installed, err := distributions(site)
	if err != nil {
		return nil, err
	}
	works := map[string]work{}
	for line := range strings.Lines(string(text)) {
		m := pinned.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		w := work{name: m[1], version: m[2]}
		dir, found := installed[normal(w.name)+"-"+w.version]
		if !found {
			return nil, fmt.Errorf("%s %s is not installed in %s", w.name, w.version, site)
		}
		if err := w.readDistribution(dir); err != nil {
			return nil, err
		}
		works[w.name] = w
	}
	return sorted(works), nil
}

var separators = regexp.MustCompile(`[-_.]+`)

// normal returns the normal form of a package's name.
func normal(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }

// distributions returns the folders of installed distributions by name-version, with the name in its normal form.
func distributions(site string) (map[string]string, error) {
	found, err := filepath.Glob(filepath.Join(site, "*.dist-info"))
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for _, dir := range found {
		if name, version, ok := strings.Cut(strings.TrimSuffix(filepath.Base(dir), ".dist-info"), "-"); ok {
			dirs[normal(name)+"-"+version] = dir
		}
	}
	return dirs, nil
}

// readDistribution reads a package's statement of its licence, and the licence's text.
func (w *work) readDistribution(dir string) error {
	w.texts = map[string]string{}
	for _, in := range []string{dir, filepath.Join(dir, "licenses")} {
		more, err := texts(in)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		maps.Copy(w.texts, more)
	}
	file, err := os.Open(filepath.Join(dir, "METADATA"))
	if err != nil {
		return err
	}
	defer file.Close()
	metadata, err := mail.ReadMessage(file)
	if err != nil {
		return fmt.Errorf("%s: METADATA: %w", w.name, err)
	}
	w.licence = cmp.Or(reviewed[w.name], metadata.Header.Get("License-Expression"), detect(w.texts))
	return nil
}

func sorted(works map[string]work) []work {
	all := make([]work, 0, len(works))
	for _, name := range slices.Sorted(maps.Keys(works)) {
		all = append(all, works[name])
	}
	return all
}
