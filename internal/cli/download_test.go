package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"vignette.dev/vignette/internal/runapi"
)

// filesIn a folder, with their contents.
func filesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(p string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(folder, p)
		text, err := os.ReadFile(p)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func wantSame(t *testing.T, got map[string]string, c *cluster, kinds runapi.Selection) {
	t.Helper()
	manifest, err := c.archive.Files(context.Background(), recordedUID)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, file := range manifest.Files {
		if !kinds.Has(file.Path) {
			continue
		}
		want++
		content, err := c.archive.File(context.Background(), recordedUID, file.Path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(content)
		_ = content.Close()
		if got[file.Path] != string(text) {
			t.Errorf("%s differs: %d bytes; want %d", file.Path, len(got[file.Path]), len(text))
		}
	}
	if len(got) != want || want == 0 {
		t.Errorf("%d files; want %d", len(got), want)
	}
}

func downloadInto(t *testing.T, c *cluster, destination string, kinds runapi.Selection) (string, error) {
	t.Helper()
	var notes bytes.Buffer
	err := c.download(t.Context(), "pair", recordedUID, destination, kinds, &notes)
	return notes.String(), err
}

func TestADownloadHasTheWholeRunOnceHoweverOftenItIsAskedFor(t *testing.T) {
	a := newRealArchive(t)
	a.run(recordedPlan(t), 1<<20)
	c, folder := a.cluster(), filepath.Join(t.TempDir(), "out")
	notes, err := downloadInto(t, c, folder, runapi.Selection{})
	if err != nil || !strings.Contains(notes, "each as the archive's SHA-256 says; 0 were there already") {
		t.Fatalf("%v, %s", err, notes)
	}
	wantSame(t, filesIn(t, folder), c, runapi.Selection{})
	if err := os.WriteFile(filepath.Join(folder, "results", "groups.csv"), []byte("changed here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := a.askedFor("/files/")
	if notes, err = downloadInto(t, c, folder, runapi.Selection{}); err != nil || strings.Contains(notes, "; 0 were") {
		t.Fatalf("again: %v, %s", err, notes)
	}
	if fetched := a.askedFor("/files/") - before; fetched != 1 {
		t.Errorf("again: %d files were fetched; want the one that was changed", fetched)
	}
	wantSame(t, filesIn(t, folder), c, runapi.Selection{})
}

func TestADownloadGoesOnWhereItsConnectionBroke(t *testing.T) {
	a := newRealArchive(t)
	a.run(recordedPlan(t), 1<<20)
	a.breakAt, a.breakAfter, a.breaks = "stdout-1.log", 700_000, 1
	c, folder := a.cluster(), t.TempDir()
	if _, err := downloadInto(t, c, folder, runapi.Selection{}); err != nil {
		t.Fatal(err)
	}
	wantSame(t, filesIn(t, folder), c, runapi.Selection{})
	if n := a.askedFor("stdout-1.log?offset=0"); n != 1 {
		t.Errorf("the log was fetched %d times from its beginning; want once, and then from where it ended early: %v", n, a.asked)
	}
}

func TestADownloadThatWasCutOffGoesOnWithTheNextCommand(t *testing.T) {
	a := newRealArchive(t)
	a.run(recordedPlan(t), 1<<20)
	c, folder := a.cluster(), t.TempDir()
	for name, beginning := range map[string]string{"a part of the log": strings.Repeat("0123456789abcdef", 1000), "something else": "x", "more than all": strings.Repeat("y", 2<<20)} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(folder, "logs", "hq", "broker")
			if err := os.MkdirAll(log, 0o700); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(filepath.Join(log, "stdout-1.log"))
			if err := os.WriteFile(filepath.Join(log, ".stdout-1.log.part"), []byte(beginning), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := downloadInto(t, c, folder, runapi.Selection{}); err != nil {
				t.Fatal(err)
			}
			wantSame(t, filesIn(t, folder), c, runapi.Selection{})
		})
	}
	if a.askedFor("stdout-1.log?offset=16000") != 1 {
		t.Error("what was there of the log was fetched again")
	}
}

func TestADownloadTakesTheKindsThatAreWanted(t *testing.T) {
	a := newRealArchive(t)
	a.run(recordedPlan(t), 1<<10)
	c := a.cluster()
	for _, kinds := range []runapi.Selection{{Only: []string{"results"}}, {Without: []string{"logs", "results"}}} {
		folder := t.TempDir()
		if _, err := downloadInto(t, c, folder, kinds); err != nil {
			t.Fatal(err)
		}
		wantSame(t, filesIn(t, folder), c, kinds)
	}
	if _, err := downloadInto(t, c, t.TempDir(), runapi.Selection{Only: []string{"captures"}}); err == nil || !strings.Contains(err.Error(), "has no such files") {
		t.Errorf("of no file: %v", err)
	}
}

// unpacked is a compressed download, with its names below its one folder.
func unpacked(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stream, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for archive := tar.NewReader(stream); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(header.Name, "pair-0b6fd5cc/")] = string(text)
	}
}

func TestADownloadIntoOneFileIsCompleteOrAbsent(t *testing.T) {
	a := newRealArchive(t)
	a.run(recordedPlan(t), 1<<20)
	c, folder := a.cluster(), t.TempDir()
	name := filepath.Join(folder, "run.tar.gz")
	a.breakAt, a.breakAfter, a.breaks = "archive.tar", 500_000, 1
	if _, err := downloadInto(t, c, name, runapi.Selection{}); err == nil || !strings.Contains(err.Error(), "ended early") {
		t.Errorf("a connection that breaks: %v", err)
	}
	if left := filesIn(t, folder); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	kinds := runapi.Selection{Without: []string{"radio"}}
	if _, err := downloadInto(t, c, name, kinds); err != nil {
		t.Fatal(err)
	}
	wantSame(t, unpacked(t, name), c, kinds)
}

func TestAFolderOfAnotherRunIsLeftAlone(t *testing.T) {
	a := newRealArchive(t)
	a.run(recordedPlan(t), 1<<10)
	for file, other := range map[string]string{
		"run.json":             `{"schemaVersion": 1, "uid": "other", "name": "pair"}`,
		"results/results.json": `{"schemaVersion": 2, "uid": "other", "experiment": "pair"}`, // a download of results alone
	} {
		folder := t.TempDir()
		at := filepath.Join(folder, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o750), os.WriteFile(at, []byte(other), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := downloadInto(t, a.cluster(), folder, runapi.Selection{Only: []string{"results"}}); err == nil || !strings.Contains(err.Error(), "has run other of pair, and this is run "+recordedUID) {
			t.Errorf("with %s: %v", file, err)
		}
		if got := filesIn(t, folder); len(got) != 1 || got[file] != other {
			t.Errorf("the folder has %v now", got)
		}
	}
}

func TestADownloadKeepsToItsFolder(t *testing.T) {
	a := analysed(t)
	a.files = map[string]string{"../outside": "x"}
	folder := filepath.Join(t.TempDir(), "out")
	var notes bytes.Buffer
	if err := testCluster(t, a).download(t.Context(), "quickstart", "5f0c", folder, runapi.Selection{}, &notes); err == nil {
		t.Error("a file outside the folder was saved")
	}
	if _, err := os.Stat(filepath.Join(folder, "..", "outside")); err == nil {
		t.Error("a file appeared outside the folder")
	}
}

func TestADownloadOfARunThatGoesOnSaysSo(t *testing.T) {
	a := newRealArchive(t)
	plan := recordedPlan(t)
	if _, err := a.as("operator").PutPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	notes, err := downloadInto(t, a.cluster(), t.TempDir(), runapi.Selection{})
	if err != nil || !strings.Contains(notes, "pair is under way: these are its present files") || strings.Contains(notes, "SHA-256") {
		t.Errorf("%v, %s", err, notes)
	}
}

func TestTheReportIsOneFile(t *testing.T) {
	a := newRealArchive(t)
	a.run(recordedPlan(t), 1<<10)
	c := a.cluster()
	t.Chdir(t.TempDir())
	var out bytes.Buffer
	file, err := c.report(t.Context(), "pair", reportOptions{}, &out)
	if text, readErr := os.ReadFile("pair-report.html"); err != nil || readErr != nil || file != "pair-report.html" || string(text) != "<html>the report</html>" {
		t.Errorf("%s, %v: %q, %v", file, err, text, readErr)
	}
	if file, err := c.report(t.Context(), "pair", reportOptions{reportFile: reportFile{output: "-"}}, &out); err != nil || file != "" || out.String() != "<html>the report</html>" {
		t.Errorf("to standard output: %s, %v: %q", file, err, out.String())
	}
}

func TestWithoutAReportTheErrorSaysWhatToDo(t *testing.T) {
	older := analysed(t)
	for name, c := range map[string]struct {
		archive archive
		want    string
	}{
		"by an older analysis": {older, "vignette results -n team-nor quickstart --uid 5f0c --download, then python3 -m vignette_analysis analyse --directory quickstart-5f0c"},
		"not yet":              {archive{runs: older.runs, state: runapi.State{Plan: runapi.Plan{Phase: "Collecting"}}}, "has no results yet, it is Collecting"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testCluster(t, c.archive).report(t.Context(), "quickstart", reportOptions{}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
}

func TestTheReportIsShownInTheBrowserThatIsSet(t *testing.T) {
	folder := t.TempDir()
	shown := filepath.Join(folder, "shown")
	browser := filepath.Join(folder, "browser")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\nprintf '%s %s' \"$1\" \"$2\" > "+shown+"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("BROWSER", browser+" --new-window:other")
	if err := openInBrowser(t.Context(), filepath.Join(folder, "r.html")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(shown); err != nil || string(text) != "--new-window "+filepath.Join(folder, "r.html") {
		t.Errorf("%q, %v", text, err)
	}
	t.Setenv("BROWSER", filepath.Join(folder, "none"))
	if err := openInBrowser(t.Context(), "r.html"); err == nil || !strings.Contains(err.Error(), "set BROWSER") {
		t.Errorf("without a browser: %v", err)
	}
}

func TestDownloadFlagsThatDoNotFitAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a destination alone":    {[]string{"results", "a", "b"}, `"b" is too much`},
		"three arguments":        {[]string{"results", "a", "b", "c", "--download"}, `"c" is too much`},
		"no name":                {[]string{"results", "--download"}, "needs the NAME of an experiment"},
		"kinds and no download":  {[]string{"results", "a", "--only", "logs"}, "--only and --without are for --download"},
		"a table in no form":     {[]string{"results", "a", "--table", "publishers"}, "--table publishers is for -o csv"},
		"no such kind":           {[]string{"results", "a", "--download", "--without", "pcap"}, `"pcap" is not a kind of files: want captures, logs, radio, records, results`},
		"a form and a download":  {[]string{"results", "a", "--download", "-o", "json"}, "--download, --output exclude each other"},
		"a page on nothing":      {[]string{"report", "a", "--open", "-o", "-"}, "--open needs a file"},
		"images of another form": {[]string{"rerun", "a", "--images", "names"}, `--images "names": want digests or tags`},
		"another input":          {[]string{"rerun", "a", "--allow-different", "seed"}, `--allow-different "seed": want scenario or configmaps`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := Main("test", slices.Concat([]string{"vignette"}, c.args), strings.NewReader(""), &out, &errs)
			if code != exitFailure || !strings.Contains(errs.String(), c.want) {
				t.Errorf("exit code %d, errors %q; want %s", code, errs.String(), c.want)
			}
		})
	}
}

func TestAPipeThatAReportIsWrittenIntoStaysOne(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "report.html")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	arrived := make(chan string, 1)
	go func() {
		text, _ := os.ReadFile(pipe) // it begins when the report does
		arrived <- string(text)
	}()
	file := reportFile{output: pipe}
	if _, err := file.write(strings.NewReader("a report"), "", io.Discard); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Fatalf("%v, %v; want a pipe still", info, err)
	}
	if got := <-arrived; got != "a report" {
		t.Errorf("the pipe's reader got %q", got)
	}
}

func TestALinkThatAReportIsWrittenToStaysOne(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "of-today.html"), filepath.Join(dir, "report.html")
	if err := errors.Join(os.WriteFile(target, []byte("an older one"), 0o600), os.Symlink("of-today.html", link)); err != nil {
		t.Fatal(err)
	}
	file := reportFile{output: link}
	if _, err := file.write(strings.NewReader("a report"), "", io.Discard); err != nil {
		t.Fatal(err)
	}
	if got, err := os.Readlink(link); err != nil || got != "of-today.html" {
		t.Errorf("it leads to %q, %v; want the file as before", got, err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "a report" {
		t.Errorf("the file has %q, %v; want the report", text, err)
	}
}

func TestAReportHasNoMoreRightsThanOtherFilesOfItsUser(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report.html")
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	file := reportFile{output: name}
	if _, err := file.write(strings.NewReader("a report"), "", io.Discard); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want rw-------, by the umask", info.Mode(), err)
	}
}
