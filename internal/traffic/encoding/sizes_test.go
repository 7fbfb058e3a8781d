package encoding

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/gz"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/payload/track"
)

const (
	shortText = "Two vehicles at the ford, moving north."
	longText  = "Two armoured vehicles and one truck crossed the ford at 0740 and move north along the river road at walking pace. " +
		"Dismounted infantry, about a section, secures the eastern bank. No contact so far, own position not compromised. " +
		"Request that observation post two confirms the direction at the road fork, and reports the time at which the last vehicle has passed. " +
		"Radio check on the alternative frequency at 0815, then silence until the next report."
)

// sized are the messages of the table.
func sized() (rows []string, messages []Message, models []string) {
	add := func(row, model string, m Message) {
		m.Made = time.UnixMilli(1588759108433)
		rows, messages, models = append(rows, row), append(messages, m), append(models, model)
	}
	position := track.Position{LatitudeDegrees: 38.746912, LongitudeDegrees: -9.156418, BearingDegrees: 211.5, SpeedKilometresPerHour: 23.4, AltitudeMetres: 104.1}
	for _, text := range []string{shortText, longText} {
		add(fmt.Sprintf("`military`, text of %d", len(text)), Military, Message{ID: "a1/chat_3", From: "a1", To: []string{"b1"}, Type: "TEXT", Text: text})
	}
	for _, text := range []string{shortText, longText} {
		add(fmt.Sprintf("`operational`, text of %d", len(text)), Operational, Message{ID: "a1/chat_3", From: "a1", To: []string{"b1", "b2"}, Precedence: "PRIORITY", Text: text})
	}
	for _, text := range []string{"", longText} {
		add(fmt.Sprintf("`nffi`, remarks of %d", len(text)), NFFI, Message{ID: "PRT-S003_28", Country: "PRT", Unit: "PRT-UNIT001", Entity: "PRT-S003", Position: position, Text: text})
	}
	add("`geojson`", GeoJSON, Message{ID: "PRT-S003_28", Country: "PRT", Unit: "PRT-UNIT001", Entity: "PRT-S003", Position: position})
	return rows, messages, models
}

// sizes returns the table: the bytes of each message in each encoding, and compressed.
func sizes(t *testing.T) string {
	t.Helper()
	encodings := []string{JSON, CBOR, XML, EXISchemaless, EXI}
	table := &strings.Builder{}
	fmt.Fprintf(table, "| message | `%s` |\n|---|%s\n", strings.Join(encodings, "` | `"), strings.Repeat("---|", len(encodings)))
	rows, messages, models := sized()
	for i, m := range messages {
		fmt.Fprintf(table, "| %s |", rows[i])
		for _, encoding := range encodings {
			if !slices.Contains(Encodings(models[i]), encoding) {
				table.WriteString(" |")
				continue
			}
			content := encoded(t, codec(t, models[i], encoding), m)
			fmt.Fprintf(table, " %d / %d |", len(content), len(gz.Append(nil, content)))
		}
		table.WriteString("\n")
	}
	return table.String()
}

func TestTheTableOfSizesIsWhatEncodingsGive(t *testing.T) {
	table := sizes(t)
	t.Log("\n" + table)
	golden.CheckTable(t, "../../../docs/reference/encodings.md", table)
}

func TestMessagesAreValidByTheirSchemas(t *testing.T) {
	testtool.Need(t, "xmllint")
	_, messages, models := sized()
	arguments := []string{"--noout", "--nonet", "--schema", writeSchemas(t)}
	folder := t.TempDir()
	for i, m := range messages {
		if !slices.Contains(Encodings(models[i]), XML) {
			continue
		}
		path := filepath.Join(folder, fmt.Sprintf("%d.xml", i))
		if err := os.WriteFile(path, encoded(t, codec(t, models[i], XML), m), 0o600); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, path)
	}
	out, _ := exec.Command("xmllint", arguments...).CombinedOutput()
	if got, want := strings.Count(string(out), "validates\n"), len(arguments)-4; got != want {
		t.Errorf("%d of %d messages are valid:\n%s", got, want, out)
	}
}
