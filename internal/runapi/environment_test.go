package runapi

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recordV1 is a run record as version 1 was first written: its environment is a flat map of text.
const recordV1 = "testdata/run-v1.json"

func TestARecordOfVersion1IsReadAsItWasWritten(t *testing.T) {
	text, err := os.ReadFile(recordV1)
	if err != nil {
		t.Fatal(err)
	}
	record, err := ReadRunRecord(recordV1, text)
	if err != nil {
		t.Fatal(err)
	}
	want := &Environment{
		Platform: Platform{Operator: "2d10e13a5fde"},
		Hosts:    []Host{{Name: "n1", Nodes: []string{"hq", "veh"}, Kernel: "6.1.0-18-amd64", Kubelet: "v1.34.1", ContainerRuntime: "containerd://1.6.20"}},
		Images: []Image{{Node: "hq", Container: "broker", Image: "r/mosquitto:1", ID: "sha256:aa"}, {Node: "hq", Container: "picture", Image: "r/traffic:1", ID: "r/traffic@sha256:bb"},
			{Node: "veh", Container: "bft", Image: "r/traffic:1", ID: "r/traffic@sha256:bb"}},
	}
	if diff := cmp.Diff(want, record.Environment); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if record.UID != "0b6fd5cc-5c1e-4f5e-9d43-6a0f3c5f6d11" || record.Spec.Seed != 7 || len(record.Nodes) != 2 || record.T0 == nil || record.Waveforms["baseline"].Link == nil {
		t.Errorf("record %+v", record)
	}
	again, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ReadRunRecord("again", again)
	if diff := cmp.Diff(record, second); err != nil || diff != "" {
		t.Errorf("%v; written and read again (-first +second):\n%s", err, diff)
	}
}

func TestRecordsOfUnknownVersionsAreRefusedByName(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a later version": {`{"schemaVersion": 3, "uid": "u", "name": "n", "environment": 7}`, "x.json has schemaVersion 3, and this program reads versions up to 2: use a newer one"},
		"no version":      {`{"uid": "u", "name": "n"}`, "x.json has no schemaVersion"},
		"results":         {`{"schemaVersion": 1, "experiment": "n"}`, "x.json is not a run record: it has no uid or no name"},
		"no JSON":         {`schemaVersion: 1`, "x.json is not a run record: it is not one whole JSON object"},
		"half a record":   {`{"schemaVersion": 1, "uid"`, "x.json is not a run record: it is not one whole JSON object"},
		"a list":          {`[]`, "x.json is not a run record: it is not one whole JSON object"},
		"a field's kind":  {`{"schemaVersion": 1, "uid": "u", "name": "n", "nodes": 3}`, "x.json is not a run record: nodes is a number"},
		"a version's":     {`{"schemaVersion": "1"}`, "x.json is not a run record: schemaVersion is a text"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ReadRunRecord("x.json", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
}

func FuzzReadRunRecord(f *testing.F) {
	text, err := os.ReadFile(recordV1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"schemaVersion":1,"uid":"u","name":"n","environment":{"platform":{}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		record, err := ReadRunRecord("x", text)
		if err != nil {
			return
		}
		if _, err := json.Marshal(record); err != nil {
			t.Errorf("read, and not written again: %v", err)
		}
	})
}

func TestOnlyImagesOfARegistryHaveADigestForOtherHosts(t *testing.T) {
	for id, want := range map[string]string{"r/app@sha256:aa": "sha256:aa", "sha256:bb": "", "": ""} {
		if got, ok := (Image{ID: id}).Digest(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %t; want %q", id, got, ok, want)
		}
	}
}
