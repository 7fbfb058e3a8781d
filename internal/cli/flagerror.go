package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vignette.dev/vignette/internal/wording"
)

// invalidArgument is the library's error about a flag's value, which ends in Go's words.
var invalidArgument = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?--([\w-]+)" flag: (.*)$`)

// flagWants are what flags of the library's own types take. Types of ours have errors of their own.
var flagWants = map[string]string{
	"duration": "a time with its unit, such as 30s or 5m",
	"float64":  "a number, such as 2.5",
	"int":      "a whole number", "int32": "a whole number", "int64": "a whole number",
	"uint16": "a whole number from 0 to 65535",
	"bool":   "true or false",
	// They are read as a row of a CSV file.
	"stringSlice": "words with commas between, and quotation marks only around a whole word",
}

// exclusiveFlags is the library's error about flags that exclude each other.
var exclusiveFlags = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)

// explainFlags says in plain words which flags exclude each other. Other errors it leaves.
func explainFlags(err error) error {
	m := exclusiveFlags.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	flags := "--" + strings.ReplaceAll(m[1], " ", ", --")
	return fmt.Errorf("%s exclude each other: give one of them", flags)
}

// flagError says in plain words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	if name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		return fmt.Errorf("%w: %s", err, seeHelp(cmd, nearestFlag(cmd, name)))
	}
	help := seeHelp(cmd, "")
	m := invalidArgument.FindStringSubmatch(err.Error())
	if m == nil {
		return fmt.Errorf("%w: %s", err, help)
	}
	value, errQuote := strconv.Unquote(m[1])
	if errQuote != nil {
		value = m[1]
	}
	reason := m[3]
	if flag := cmd.Flags().Lookup(m[2]); flag != nil && flagWants[flag.Value.Type()] != "" {
		reason = "want " + flagWants[flag.Value.Type()]
	}
	return fmt.Errorf("--%s %s: %s: %s", m[2], cmp.Or(value, `""`), reason, help)
}

// nearestFlag of a command to a misspelt name; empty if none is near.
func nearestFlag(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := wording.Nearest(name, names); near != "" {
		return "--" + near
	}
	return ""
}
