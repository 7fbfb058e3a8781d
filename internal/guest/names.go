package guest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/internal/wholefile"
)

// The guest's lines in the hosts file are between these.
const hostsBegin, hostsEnd = "# vignette: begin", "# vignette: end"

// nameHost sets the machine's host name to the node's, and adds its peers' names.
func nameHost(c guestconfig.Config, hostnameFile, hostsFile string) error {
	if err := unix.Sethostname([]byte(c.Node)); err != nil {
		return fmt.Errorf("host name %s: %w", c.Node, err)
	}
	if err := replaceFile(hostnameFile, []byte(c.Node+"\n"), 0o644); err != nil {
		return err
	}
	before, err := os.ReadFile(hostsFile)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return replaceFile(hostsFile, []byte(hostsWith(string(before), c.Hosts, c.Node)), 0o644)
}

// hostsWith keeps the lines that were there, except those with only the node's name, such as Debian's or cloud-init's 127.0.1.1: the
// name stands for the node's radio address, as for its peers.
func hostsWith(before string, hosts []guestconfig.Host, node string) string {
	var b strings.Builder
	if !strings.Contains(before, "localhost") {
		b.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	}
	ours := false
	isOther := func(name string) bool { return name != node && !strings.HasPrefix(name, node+".") }
	for line := range strings.Lines(before) {
		fields := strings.Fields(strings.SplitN(line, "#", 2)[0])
		switch {
		case strings.TrimSpace(line) == hostsBegin:
			ours = true
		case strings.TrimSpace(line) == hostsEnd:
			ours = false
		case !ours && (len(fields) < 2 || slices.ContainsFunc(fields[1:], isOther)):
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	b.WriteString(hostsBegin + "\n")
	for _, h := range hosts {
		fmt.Fprintf(&b, "%s %s\n", h.Address, strings.Join(h.Names, " "))
	}
	b.WriteString(hostsEnd + "\n")
	return b.String()
}

// replaceFile as a whole. One that is a mount itself cannot be renamed to, and is overwritten.
func replaceFile(path string, content []byte, mode os.FileMode) error {
	err := wholefile.Write(path, content, mode)
	if rename := (*os.LinkError)(nil); errors.As(err, &rename) {
		return os.WriteFile(path, content, mode)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
