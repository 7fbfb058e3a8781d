package guest

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/guestconfig"
)

// The lines of a file of hosts that are ours lie between these.
const hostsBegin, hostsEnd = "# vignette: begin", "# vignette: end"

// nameHost gives the machine the node's name and the peers theirs.
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

// hostsWith has what there was before but for lines that name the node itself, as 127.0.1.1 does in Debian: its name stands for its
// radio address, as for its peers.
func hostsWith(before string, hosts []guestconfig.Host, node string) string {
	var b strings.Builder
	if !strings.Contains(before, "localhost") {
		b.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	}
	ours := false
	for line := range strings.Lines(before) {
		fields := strings.Fields(strings.SplitN(line, "#", 2)[0])
		switch {
		case strings.TrimSpace(line) == hostsBegin:
			ours = true
		case strings.TrimSpace(line) == hostsEnd:
			ours = false
		case !ours && !(len(fields) == 2 && fields[1] == node):
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

// replaceFile in one step. One that is mounted by itself is written in place.
func replaceFile(path string, content []byte, mode os.FileMode) error {
	temporary := path + ".vignette"
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		os.Remove(temporary)
		return os.WriteFile(path, content, mode)
	}
	return nil
}
