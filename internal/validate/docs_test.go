package validate

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/markdown"
)

// TestEveryWholeObjectInTheDocsIsValid skips fragments, which have no apiVersion, or … in place of a value.
func TestEveryWholeObjectInTheDocsIsValid(t *testing.T) {
	judged := 0
	err := filepath.WalkDir(filepath.Join("..", "..", "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, block := range markdown.Blocks(string(text)) {
			isYAML := block.Language == "yaml" || block.Language == "yml"
			if !isYAML || !strings.Contains("\n"+block.Text, "\napiVersion: vignette.dev/") || strings.Contains(block.Text, ": …") {
				continue
			}
			judged++
			if report := Text(fmt.Sprintf("%s, block at line %d", path, block.Line), []byte(block.Text)); report.Failed() {
				t.Errorf("findings:\n%s\nwant none", join(report.Findings))
			}
		}
		return err
	})
	if err != nil || judged == 0 {
		t.Errorf("%d objects, %v; want some", judged, err)
	}
}

func TestAJammerEndsByAnyNameOfTheField(t *testing.T) {
	for name, valid := range map[string]bool{"silent: true": true, "off: true": true, "'off': true": true, "silent: false": false, "off: false": false} {
		text := strings.Replace(sound, "    link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}\n", "    rfpipe: {phy: {pathloss: FreeSpace}, interference: All}\n", 1)
		text = strings.Replace(text, "{network: lan, silent: true}", "{network: lan, jammer: {name: j, "+name+"}}", 1)
		findings := join(judgeText(t, text))
		if refused := strings.Contains(findings, "jammer"); refused == valid {
			t.Errorf("%s: findings:\n%s\nvalid should be %v", name, findings, valid)
		}
	}
}
