package emane

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Shell answers questions about one NEM's process, in the words of EMANE's own shell. It changes nothing, because the run
// record would not have it.
type Shell struct {
	control *Control
	nem     NEM
}

// ShellHelp lists the commands.
const ShellHelp = `show                              components of the NEM
get stat LAYER [NAME...]          statistics
get table LAYER [NAME...]         tables of statistics
get config LAYER [NAME...]        parameters
help, quit
LAYER: mac, phy, transport, shim, emulator, or all
`

// NewShell asks a control port which NEM it is for.
func NewShell(c *Control) (*Shell, error) {
	nems, err := c.Manifest()
	if err != nil {
		return nil, err
	}
	if len(nems) != 1 {
		return nil, fmt.Errorf("the process has %d NEMs: want 1", len(nems))
	}
	return &Shell{c, nems[0]}, nil
}

// Run carries out the commands that are read, until the input or quit ends it. prompt is written before each. Wrong commands
// are answered with what is right.
func (s *Shell) Run(in io.Reader, out io.Writer, prompt string) error {
	lines := bufio.NewScanner(in)
	for {
		if _, err := io.WriteString(out, prompt); err != nil {
			return err
		}
		if !lines.Scan() {
			if prompt != "" {
				fmt.Fprintln(out) // Ctrl-D leaves the cursor behind the prompt
			}
			return lines.Err()
		}
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if words[0] == "quit" || words[0] == "exit" {
			return nil
		}
		err := s.Command(out, words...)
		if errors.As(err, new(Misuse)) {
			_, err = fmt.Fprintln(out, err)
		}
		if err != nil {
			return err
		}
	}
}

// Misuse is the error of a command that is wrong.
type Misuse struct{ error }

func misused(format string, arguments ...any) error { return Misuse{fmt.Errorf(format, arguments...)} }

var layerNames = map[Layer]string{MAC: "mac", PHY: "phy", Shim: "shim", Transport: "transport"}

// part is a component with the name of its layer.
type part struct {
	name    string
	buildID uint32
}

// parts are those of a layer's name.
func (s *Shell) parts(layer string) (found []part, err error) {
	all := []part{{"emulator", Emulator}}
	for _, c := range s.nem.Components {
		all = append(all, part{layerNames[c.Layer], c.BuildID})
	}
	var names []string
	for _, p := range all {
		if layer == "all" || p.name == layer {
			found = append(found, p)
		}
		names = append(names, p.name)
	}
	if len(found) == 0 {
		return nil, misused("layer %q: want %s or all", layer, strings.Join(slices.Compact(names), ", "))
	}
	return found, nil
}

// Command carries out one command.
func (s *Shell) Command(out io.Writer, words ...string) error {
	switch {
	case words[0] == "help":
		_, err := io.WriteString(out, ShellHelp)
		return err
	case words[0] == "show":
		for _, c := range s.nem.Components {
			if _, err := fmt.Fprintf(out, "nem %d  %-9s %s\n", s.nem.ID, layerNames[c.Layer], c.Plugin); err != nil {
				return err
			}
		}
		return nil
	case words[0] == "set" || words[0] == "clear":
		return misused("%s would change the run without a record: change the network by vignette set, or in the experiment", words[0])
	case words[0] != "get" || len(words) < 3:
		return misused("%q: want show, get stat|table|config LAYER [NAME...], help or quit", strings.Join(words, " "))
	}
	parts, err := s.parts(words[2])
	if err != nil {
		return err
	}
	found := 0
	for _, p := range parts {
		n, err := s.get(out, words[1], p, words[3:])
		if err != nil {
			return err
		}
		found += n
	}
	if found == 0 && len(words) > 3 {
		return misused("%s of %s: none is called %s; get %[1]s %[2]s has all", words[1], words[2], strings.Join(words[3:], ", "))
	}
	return nil
}

// get writes what is called one of the names, or all, and returns how many there are. EMANE would refuse an unknown name
// and all others with it.
func (s *Shell) get(out io.Writer, kind string, p part, names []string) (int, error) {
	wanted := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	switch kind {
	case "stat":
		values, err := s.control.Statistics(p.buildID)
		return writeValues(out, p.name, wanted, values, err)
	case "config":
		values, err := s.control.Configuration(p.buildID)
		return writeValues(out, p.name, wanted, joined(values), err)
	case "table":
		tables, err := s.control.Tables(p.buildID)
		if err != nil {
			return 0, err
		}
		found := slices.DeleteFunc(slices.Sorted(maps.Keys(tables)), func(name string) bool { return !wanted(name) })
		for _, name := range found {
			if err := writeTable(out, p.name+" "+name, tables[name]); err != nil {
				return 0, err
			}
		}
		return len(found), nil
	}
	return 0, misused("get %s: want stat, table or config", kind)
}

// joined writes the values of a parameter with commas between them.
func joined(values map[string][]any) map[string]any {
	all := map[string]any{}
	for name, some := range values {
		var texts []string
		for _, v := range some {
			texts = append(texts, fmt.Sprint(v))
		}
		all[name] = strings.Join(texts, ",")
	}
	return all
}

func writeValues(out io.Writer, layer string, wanted func(string) bool, values map[string]any, err error) (int, error) {
	found := slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(name string) bool { return !wanted(name) })
	for _, name := range found {
		if err == nil {
			_, err = fmt.Fprintf(out, "%s  %s = %v\n", layer, name, values[name])
		}
	}
	return len(found), err
}

func writeTable(out io.Writer, title string, t Table) error {
	aligned := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(aligned, "%s\n", title) // errors show at the end
	fmt.Fprintln(aligned, strings.Join(t.Labels, "\t"))
	for _, row := range t.Rows {
		for i, v := range row {
			if i > 0 {
				fmt.Fprint(aligned, "\t")
			}
			fmt.Fprint(aligned, v)
		}
		fmt.Fprintln(aligned)
	}
	return aligned.Flush()
}
