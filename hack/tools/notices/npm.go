package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const inModules = "node_modules/"

// npmPackages returns the packages that end in the web console: those of package-lock.json that are not for its build alone.
func npmPackages(console string) ([]work, error) {
	text, err := os.ReadFile(filepath.Join(console, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, License string
			Dev, DevOptional bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("package-lock.json: %w", err)
	}
	works := map[string]work{}
	for path, p := range lock.Packages {
		at := strings.LastIndex(path, inModules)
		if at < 0 || p.Dev || p.DevOptional {
			continue
		}
		name := path[at+len(inModules):]
		if strings.HasPrefix(name, "@types/") {
			continue
		}
		w := work{name: name, version: p.Version}
		if w.texts, err = texts(filepath.Join(console, path)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s %s is not installed in %s", name, p.Version, console)
		} else if err != nil {
			return nil, err
		}
		w.licence = cmp.Or(p.License, detect(w.texts))
		works[path] = w
	}
	return sorted(works), nil
}
