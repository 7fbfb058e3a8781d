// Command studies writes the generated files below scenarios: the studies E1 to E6 and E8, which differ only as their names say, the battalion,
// the campaigns over all of them, those of further studies, and the synthetic script of messages. Run it from the repository's root: go run ./hack/studies
package main

import (
	"embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"text/template"
)

//go:embed templates
var files embed.FS

var templates = template.Must(template.ParseFS(files, "templates/*.yaml"))

func main() {
	for path, text := range All() {
		path = filepath.Join("scenarios", filepath.FromSlash(path))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// All files by their path below scenarios. Some runs of E5 and E8 are points of campaigns only.
func All() map[string]string {
	all := maps.Clone(runs())
	for _, s := range services() {
		if s.OnlyInCampaign() {
			delete(all, s.path())
		}
	}
	for _, p := range pairs() {
		if p.OnlyInCampaign() {
			delete(all, p.path())
		}
	}
	for _, s := range furtherStudies() {
		delete(all, s.setup.path())
	}
	all["traffic-scripts/messages-synthetic.yaml"] = execute("traffic-script.yaml", trafficScript())
	for _, c := range campaigns() {
		all[c.path()] = execute("campaign.yaml", c)
	}
	return all
}

// runs are the single runs, by the paths of their files.
var runs = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	add := func(path, name string, values any) { all[path] = execute(name, values) }
	for _, c := range companies() {
		add(c.path(), "company.yaml", c)
	}
	for _, c := range coalitions() {
		add(c.path(), "coalition.yaml", c)
	}
	for _, n := range nations() {
		add(n.path(), "nations.yaml", n)
	}
	for _, s := range services() {
		add(s.path(), "services.yaml", s)
	}
	for _, p := range allPlatoons() {
		add(p.path(), "platoons.yaml", p)
	}
	for _, p := range pairs() {
		add(p.path(), "pairs.yaml", p)
	}
	for _, s := range furtherStudies() {
		all[s.setup.path()] = s.setup.text()
	}
	for _, f := range []form{{false}, {true}} {
		add(battalion{f}.path(), "battalion.yaml", battalion{f})
	}
	return all
})

func execute(name string, values any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, values); err != nil {
		panic(err) // both templates and values are here
	}
	return b.String()
}

// form is a study's form: the full one, or the short one for trials and tests.
type form struct {
	Short bool
}

func (f form) folder(study string) string {
	if f.Short {
		return study + "/short/"
	}
	return study + "/"
}

func (f form) suffix() string {
	if f.Short {
		return "-short"
	}
	return ""
}

func choose[T any](condition bool, then, otherwise T) T {
	if condition {
		return then
	}
	return otherwise
}

// link describes a link in words, by its waveform's name.
type link string

// LinkWords describes the link.
func (l link) LinkWords() string {
	return fmt.Sprintf("the %s link (%s)", string(l), map[link]string{
		"baseline": "LAN-like: no loss", "tactical-1": "9.8 kbit/s, 100 ms, 1 % loss", "tactical-2": "9.8 kbit/s, 100 ms, 10 % loss",
		"satcom": "250 kbit/s, 550 ms, no loss", "low-band-5g": "100 Mbit/s, 20 ms, no loss", "tactical-broadband": "2 Mbit/s, 100 ms, 1 % loss",
		"nbwf": "16 kbit/s, 500 ms, no loss", "cnr-1": "9.6 kbit/s, 100 ms, 1 % loss", "cnr-10": "9.6 kbit/s, 100 ms, 10 % loss", "line-of-sight": "2 Mbit/s, 5 ms, no loss",
		"wifi-1": "2 Mbit/s, 100 ms, 1 % loss", "wifi-2": "2 Mbit/s, 100 ms, 20 % loss", "edge": "50 kbit/s up, 200 kbit/s down, 200 ms, no loss",
	}[l])
}
