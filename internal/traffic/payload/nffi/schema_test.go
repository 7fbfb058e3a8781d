package nffi_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/payload/nffi"
)

// validate gives each message to xmllint with the schema, and what it says of each.
func validate(t *testing.T, messages ...string) string {
	t.Helper()
	testtool.Need(t, "xmllint")
	args, dir := []string{"--noout", "--nonet", "--schema", "nffi.xsd"}, t.TempDir()
	for i, m := range messages {
		path := filepath.Join(dir, fmt.Sprintf("%d.xml", i))
		if err := os.WriteFile(path, []byte(m), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	out, _ := exec.Command("xmllint", args...).CombinedOutput()
	return string(out)
}

func TestMessagesAreValidByTheSchema(t *testing.T) {
	at := time.UnixMilli(1588759108433)
	var messages []string
	for _, names := range [][3]string{{"PRT", "PRT-UNIT001", "PRT-S003"}, {"A&B", "<unit>", "e"}, {"MECHANISEDBATTALION", "MECHANISEDBATTALION-UNIT001", "MECHANISEDBATTALION-S001"}} {
		maker := nffi.New(names[0], names[1], names[2], 7)
		for i := range 50 {
			messages = append(messages, string(maker.Append(nil, fmt.Sprintf("%s_%d", names[2], i+1), at.Add(time.Duration(i)*time.Hour))))
		}
	}
	said := validate(t, messages...)
	if got := strings.Count(said, ".xml validates\n"); got != len(messages) {
		t.Errorf("%d of %d messages are valid:\n%s", got, len(messages), said)
	}
}

func TestMessagesWithSeveralTracksAreValidAndHaveTheIdOfTheFirst(t *testing.T) {
	at := time.UnixMilli(1588759108433)
	maker, err := nffi.NewTracks("PRT", "PRT-UNIT001", "PRT-S003", 7, 20)
	if err != nil {
		t.Fatal(err)
	}
	message := maker.Append(nil, "PRT-S003_4", at)
	if got := bytes.Count(message, []byte("<track>")); got != 20 {
		t.Errorf("%d tracks; want 20", got)
	}
	if id, made, ok := nffi.Parse(message); id != "PRT-S003_4" || !made.Equal(at) || !ok {
		t.Errorf("the message is %s of %s, %v; want that of its first track", id, made, ok)
	}
	if said := validate(t, string(message)); !strings.Contains(said, ".xml validates\n") {
		t.Error(said)
	}
}

func TestANumberOfTracksOutOfRangeIsRefused(t *testing.T) {
	for _, tracks := range []int{-1, 0, 1001} {
		if _, err := nffi.NewTracks("PRT", "PRT-UNIT001", "PRT-S003", 7, tracks); err == nil {
			t.Errorf("%d tracks are accepted", tracks)
		}
	}
}

func TestTheSchemaRefusesWhatIsNoMessage(t *testing.T) {
	good := string(nffi.New("PRT", "PRT-UNIT001", "PRT-S003", 7).Append(nil, "PRT-S003_1", time.UnixMilli(1588759108433)))
	wrong := map[string][2]string{
		"a latitude beyond the pole": {"<latitude>038", "<latitude>138"},
		"an unknown status":          {"OPERATIONAL", "TIRED"},
		"no time":                    {"<dateTime>20200506095828</dateTime>", ""},
		"a time of another form":     {"20200506095828", "2020-05-06T09:58"},
		"an element of another name": {"remarks", "comments"},
		"another order":              {"<operStatusData><statusCode>OPERATIONAL</statusCode></operStatusData>", ""},
		"a short symbol":             {"SFGPUCIZ---D---", "SFGP"},
		"another namespace":          {"nffi13", "nffi14"},
		"no transponder":             {"<transponderId>PRT-S003</transponderId>", "<transponderId></transponderId>"},
	}
	for name, c := range wrong {
		bad := strings.ReplaceAll(good, c[0], c[1])
		if name == "another order" {
			bad = strings.Replace(bad, "<identificationData>", c[0]+"<identificationData>", 1)
		}
		if bad == good {
			t.Fatalf("%s: nothing was changed in %s", name, good)
		}
		if said := validate(t, bad); !bytes.Contains([]byte(said), []byte("fails to validate")) {
			t.Errorf("%s passes: %s", name, said)
		}
	}
}
