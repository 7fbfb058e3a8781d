package crdrules

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"vignette.dev/vignette/crds"
)

// printed are the cells that kubectl get shows of an object: the first value at each column's path, as the API server finds it.
func printed(t *testing.T, columns []apiextensionsv1.CustomResourceColumnDefinition, object map[string]any) map[string]string {
	t.Helper()
	cells := map[string]string{}
	for _, column := range columns {
		path := jsonpath.New(column.Name).AllowMissingKeys(true)
		if err := path.Parse("{" + column.JSONPath + "}"); err != nil {
			t.Fatalf("column %s: %v", column.Name, err)
		}
		found, err := path.FindResults(object)
		if err != nil || len(found) == 0 || len(found[0]) == 0 {
			continue
		}
		var cell bytes.Buffer
		if err := path.PrintResults(&cell, found[0][:1]); err != nil {
			t.Fatalf("column %s: %v", column.Name, err)
		}
		cells[column.Name] = cell.String()
	}
	return cells
}

func TestKubectlShowsTheFiguresOfLinksAndOfRadios(t *testing.T) {
	all, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Spec.Names.Kind == "Waveform" })
	for name, want := range map[string]string{
		"tactical-1":      "9.8kbit 100ms 1%",
		"rfpipe-wideband": "175kbit 300MHz 250kHz",
		"tdma-wideband":   "1Mbit 300MHz 250kHz 5ms",
	} {
		text, err := os.ReadFile(filepath.Join("../../charts/vignette/files/waveforms", name+".yaml"))
		var object map[string]any
		if err == nil {
			err = yaml.Unmarshal(text, &object)
		}
		if err != nil {
			t.Fatal(err)
		}
		cells := printed(t, all[i].Spec.Versions[0].AdditionalPrinterColumns, object)
		row := strings.Fields(strings.Join([]string{cells["Rate"], cells["Delay"], cells["Loss"], cells["Frequency"], cells["Bandwidth"], cells["Slot"]}, " "))
		if got := strings.Join(row, " "); got != want {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
	}
}
