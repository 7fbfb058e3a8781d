package trafficconfig

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTheReferenceHasTheRowOfEachProtocol(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/protocols.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Protocols {
		_, row, found := strings.Cut(string(text), "\n| `"+p.Name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		if !found {
			t.Errorf("docs/reference/protocols.md has no row of %s in its first table", p.Name)
			continue
		}
		transport := "TCP"
		if p.UDP {
			transport = "UDP"
		}
		want := []string{fmt.Sprintf("| %s %d", transport, p.Port)}
		if p.SecurePort != 0 {
			want[0] += fmt.Sprintf(" (%d)", p.SecurePort)
		}
		for _, kind := range p.Brokers {
			want = append(want, "`"+kind+"`")
		}
		levels := fmt.Sprint(p.MinQoS)
		for qos := p.MinQoS + 1; qos <= p.MaxQoS; qos++ {
			levels += fmt.Sprintf(", %d", qos)
		}
		for _, part := range append(want, "| "+levels+" |") {
			if !strings.Contains(row, part) {
				t.Errorf("the row of %s in docs/reference/protocols.md lacks %q: %s", p.Name, part, row)
			}
		}
	}
}
