package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"
)

// invalidArgument is the library's error about a flag's value, which ends in Go's words.
var invalidArgument = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?--([\w-]+)" flag: (.*)$`)

// flagWants are what flags of the library's own types take. Types of ours have errors of their own.
var flagWants = map[string]string{
	"duration": "a time with its unit, such as 30s or 5m",
	"float64":  "a number, such as 2.5",
	"int":      "a whole number", "int32": "a whole number", "int64": "a whole number",
	"uint": "a whole number, not negative", "uint32": "a whole number, not negative", "uint64": "a whole number, not negative",
	"bool": "true or false",
}

// flagError says in plain words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("see %s --help", cmd.CommandPath())
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
