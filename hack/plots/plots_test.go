package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"
)

func TestThePicturesAreWhatTheCodeDraws(t *testing.T) {
	for name, plot := range plots {
		t.Run(name, func(t *testing.T) {
			c, err := plot()
			if err != nil {
				t.Fatal(err)
			}
			drawn := c.SVG()
			if err := xml.Unmarshal([]byte(drawn), new(struct{})); err != nil {
				t.Errorf("no XML: %v", err)
			}
			committed, err := os.ReadFile(filepath.Join("../..", directory, name+".svg"))
			if err != nil {
				t.Fatal(err)
			}
			if drawn != string(committed) {
				t.Error("the committed picture is another one: run go run ./hack/plots, and look at it")
			}
		})
	}
}
