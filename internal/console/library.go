package console

import (
	"bytes"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

// LibraryEntry is a file of the library.
type LibraryEntry struct {
	Path string `json:"path"`
	// Title is the first sentence that the file says of itself.
	Title string `json:"title"`
	// Kind of the object for which the file is there: a Campaign, an Experiment, or what else it has.
	Kind string `json:"kind"`
	// Name of that object.
	Name string `json:"name"`
	// Study is the folder.
	Study string `json:"study"`
}

// library has the scenarios that the page offers.
type library struct {
	entries []LibraryEntry
	texts   map[string][]byte
}

func newLibrary(files fs.FS) (*library, error) {
	l := &library{entries: []LibraryEntry{}, texts: map[string][]byte{}}
	if files == nil {
		return l, nil
	}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if entry, ok := describeFile(name, text); ok {
			l.entries, l.texts[name] = append(l.entries, entry), text
		}
		return nil
	})
	slices.SortFunc(l.entries, func(a, b LibraryEntry) int { return strings.Compare(a.Path, b.Path) })
	return l, err
}

var (
	kindLine = regexp.MustCompile(`(?m)^kind: *(\w+)`)
	nameLine = regexp.MustCompile(`(?m)^ +name: *([\w.-]+)|^metadata: *\{name: *([\w.-]+)`)
)

// kinds that files are there for, the first before the others.
var kinds = []string{"Campaign", "Experiment", "Scenario", "Waveform", "NodeTemplate"}

// describeFile returns the entry of a file; false if it has no object of these kinds.
func describeFile(name string, text []byte) (found LibraryEntry, ok bool) {
	rank := len(kinds)
	for document := range bytes.SplitSeq(text, []byte("\n---")) {
		kind := kindLine.FindSubmatch(document)
		if kind == nil {
			continue
		}
		if at := slices.Index(kinds, string(kind[1])); at >= 0 && at < rank {
			rank = at
			found = LibraryEntry{Path: name, Title: firstSentence(document), Kind: kinds[at], Name: objectName(document), Study: studyOf(name)}
		}
	}
	return found, rank < len(kinds)
}

func studyOf(name string) string {
	study, _, _ := strings.Cut(name, "/")
	return study
}

func objectName(document []byte) string {
	match := nameLine.FindSubmatch(document)
	if match == nil {
		return ""
	}
	return string(match[1]) + string(match[2])
}

// firstSentence returns the first sentence of the comment before an object, without its full stop.
func firstSentence(document []byte) string {
	var words []string
	for line := range strings.Lines(string(document)) {
		line = strings.TrimSpace(line)
		comment, is := strings.CutPrefix(line, "#")
		if !is && words == nil && (line == "" || strings.HasPrefix(line, "---")) {
			continue
		}
		comment = strings.TrimSpace(comment)
		if !is || comment == "" {
			break
		}
		words = append(words, comment)
	}
	sentence, _, _ := strings.Cut(strings.Join(words, " "), ". ")
	return strings.TrimSuffix(sentence, ".")
}

func (c *Console) listLibrary(w http.ResponseWriter, _ *http.Request, _ *User) error {
	return WriteJSON(w, c.library.entries)
}

func (c *Console) readLibrary(w http.ResponseWriter, r *http.Request, _ *User) error {
	text, found := c.library.texts[r.PathValue("path")]
	if !found {
		return Errorf(http.StatusNotFound, "the library has no file %s", r.PathValue("path"))
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text) // the browser may be gone
	return nil
}
