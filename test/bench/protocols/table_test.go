package main

import (
	"strings"
	"testing"
)

func TestAnEntryIsFoundByAWordOfItsNameInEitherCase(t *testing.T) {
	e := entry{name: "STOMP 1.2, RabbitMQ"}
	if !e.matches("stomp") || !e.matches("") || e.matches("mqtt-sn") {
		t.Error("want stomp and nothing at all to match, and mqtt-sn not")
	}
}

func TestATableHasEachLineAtOnceWithRatiosToTheTool(t *testing.T) {
	var out strings.Builder
	table := newTable(&out)
	head := out.Len()
	tool, other := none(), none()
	tool.perSecond, tool.publisher = 1000, 4
	other.perSecond, other.publisher, other.median = 500, 8, 0.25
	for _, step := range []struct {
		name string
		e    entry
		l    line
		want string
	}{
		{"before the tool there are no ratios", entry{name: "early"}, other, "500 - 8.00 - - 125000 - - 0.250 - early"},
		{"the tool is as fast as itself", entry{name: "tool", tool: true}, tool, "1000 - 4.00 - - 250000 1.00 1.00 - - tool"},
		{"half as fast, and twice the time", entry{name: "half"}, other, "500 - 8.00 - - 125000 0.50 2.00 0.250 - half"},
		{"what is skipped says why", entry{name: "lost"}, line{skipped: "it is not installed"}, "lost: skipped, it is not installed"},
	} {
		before := out.Len()
		table.print(step.e, step.l)
		if got := strings.Join(strings.Fields(out.String()[before:]), " "); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
	lines := strings.Split(out.String()[head:], "\n")
	if !strings.HasPrefix(lines[0][strings.LastIndex(lines[0], "-"):], "-  early") || strings.Index(lines[0], "  early") != strings.Index(lines[2], "  half") {
		t.Errorf("names are not in one column:\n%s", out.String())
	}
}
