package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/reference"
	runclient "vignette.dev/vignette/internal/runapi/client"
)

// referenceFile is the file of --reference.
type referenceFile struct {
	path, text string
	figures    []reference.Figure
}

func (f *referenceFile) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.path, "reference", "", "CSV `file` of published or earlier figures, to stand beside those of the runs")
	complete(cmd, "reference", cobra.FixedCompletions([]string{"csv"}, cobra.ShellCompDirectiveFilterFileExt))
}

// read reads the file, and refuses one that no comparison could take. Which runs and groups there are is for the server.
func (f *referenceFile) read() error {
	if f.path == "" {
		return nil
	}
	text, err := readAtMost(f.path, reference.MaxBytes+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--reference %s: there is no such file", f.path)
	case err != nil:
		return fmt.Errorf("--reference %s: it cannot be read: want a CSV file", f.path)
	case len(text) > reference.MaxBytes:
		return fmt.Errorf("--reference %s: it has more than %d bytes, which is the limit", f.path, reference.MaxBytes)
	}
	if f.figures, err = reference.Parse(f.path, text, nil); err != nil {
		return err
	}
	f.text = string(text)
	return nil
}

// leaveOut empties the rows of points of which no run is compared: a paper's table is then of use for some points, too.
// The other rows keep their numbers.
func (f *referenceFile) leaveOut(points []string, notes io.Writer) error {
	rows := strings.Split(f.text, "\n")
	var left []string
	count := 0
	for _, figure := range f.figures {
		if !slices.Contains(points, figure.Run) {
			continue
		}
		rows[figure.Row-1] = ""
		count++
		if !slices.Contains(left, figure.Run) {
			left = append(left, figure.Run)
		}
	}
	if count == 0 {
		return nil
	}
	if count == len(f.figures) {
		return fmt.Errorf("--reference %s: it has no figure of a point that is compared: its points are %s", f.path, strings.Join(left, ", "))
	}
	f.text = strings.Join(rows, "\n")
	fmt.Fprintf(notes, "%d reference figures are left out, as no run of their points is compared: %s\n", count, strings.Join(left, ", "))
	return nil
}

// readAtMost reads so many bytes of a file, which may be large or have no end.
func readAtMost(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// with adds the file to how runs are compared.
func (f *referenceFile) with(format, by string) runclient.Comparison {
	how := runclient.Comparison{Format: format, By: by, Reference: f.text}
	if f.text != "" {
		how.ReferenceName = filepath.Base(f.path)
	}
	return how
}
