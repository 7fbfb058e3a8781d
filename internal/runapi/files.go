package runapi

import (
	"fmt"
	"slices"
	"strings"
)

// FileKinds are the kinds of a run's files: packet captures, nodes' logs, hosts' radio logs, the analysis' results, and records,
// which are all others.
var FileKinds = []string{"captures", "logs", "radio", "records", "results"}

// KindOf a path below a run.
func KindOf(path string) string {
	folder, _, inFolder := strings.Cut(path, "/")
	if inFolder && slices.Contains(FileKinds, folder) {
		return folder
	}
	return "records"
}

// Selection of a run's files by their kinds; the zero Selection has all of them.
type Selection struct {
	Only, Without []string
}

// Check refuses unknown kinds, and both lists together.
func (s Selection) Check() error {
	for _, kind := range slices.Concat(s.Only, s.Without) {
		if !slices.Contains(FileKinds, kind) {
			return fmt.Errorf("%q is not a kind of files: want %s", kind, strings.Join(FileKinds, ", "))
		}
	}
	if len(s.Only) > 0 && len(s.Without) > 0 {
		return fmt.Errorf("only %s and without %s: want one of the two", strings.Join(s.Only, ","), strings.Join(s.Without, ","))
	}
	return nil
}

// Has reports whether a path is selected.
func (s Selection) Has(path string) bool {
	kind := KindOf(path)
	if len(s.Only) > 0 {
		return slices.Contains(s.Only, kind)
	}
	return !slices.Contains(s.Without, kind)
}

// ReportFile is the report of a run, below its folder.
const ReportFile = "results/report.html"

// shortUID characters of a UID distinguish runs of one name for people.
const shortUID = 8

// FolderName is the folder of a downloaded run: NAME-UID, with the beginning of the UID.
func FolderName(name, uid string) string { return name + "-" + uid[:min(len(uid), shortUID)] }
