package mapdata

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

const reportsHeader = "ts,publisher,node,id,latitudeDegrees,longitudeDegrees,altitudeMetres,receivers,received\n"

func TestAReportedPositionHoldsFromItsReceptionUntilAFresherOne(t *testing.T) {
	table := reportsHeader +
		"1000000000,veh/bft,veh,m1,58.1,8,20,1,3000000000\n" +
		"2000000000,veh/bft,veh,m2,58.2,8,20,1,9000000000\n" + // overtaken by m3
		"3000000000,veh/bft,veh,m3,58.3,8,20,2,4500000000\n" +
		"4000000000,veh/bft,veh,m4,58.4,8,20,0,\n" + // lost
		"1000000000,nor/units/1,nor,m1,38.7,-9.1,0,1,2000000000\n" // the platform of an instance
	reports, err := readReports(strings.NewReader(table), map[string]bool{"nor/units/1": true}, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]Point{}
	for node, some := range reports {
		got[node] = freshest(some, 100)
	}
	if diff := cmp.Diff(map[string][]Point{"veh": {{2, 58.1, 8, 0}, {3.5, 58.3, 8, 0}}}, got); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

func TestManyReportsAreThinned(t *testing.T) {
	var reports []report
	for i := range int64(1000) {
		reports = append(reports, report{made: i, received: i, point: Point{float64(i)}})
	}
	if got := freshest(reports, 100); len(got) != 100 || got[1][0] != 10 {
		t.Errorf("%d points, the second at %v; want 100, each tenth", len(got), got[1])
	}
}

func TestATableThatIsNotAsExpectedHasNoReports(t *testing.T) {
	older, err := readReports(strings.NewReader("ts,publisher,node,id,latitudeDegrees,longitudeDegrees\n1,a/b,a,m,1,1\n"), nil, time.Unix(0, 0))
	if len(older) > 0 || err != nil {
		t.Errorf("%v, %v for an earlier version's table; want nothing", older, err)
	}
	for name, table := range map[string]string{"empty": "", "a torn line": reportsHeader + "1000,a/b", "no number": reportsHeader + "x,a/b,a,m,1,1,0,1,5\n"} {
		if _, err := readReports(strings.NewReader(table), nil, time.Unix(0, 0)); !errors.Is(err, errReports) {
			t.Errorf("%s: %v; want %v", name, err, errReports)
		}
	}
}

func TestTheMapHasWhatNodesReportedOnceThereAreResults(t *testing.T) {
	plan := planned(t)
	t0 := time.Unix(1, 0)
	plan.T0 = &t0
	node := plan.Nodes[1].Name
	state := runapi.State{Plan: plan, Sealed: true}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/runs/{uid}", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(state) })
	mux.HandleFunc("GET /v1/runs/{uid}/files/results/reports.csv", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, reportsHeader+"1000000000,"+node+"/bft,"+node+",m1,58.1,8,20,1,3000000000\n")
	})
	archive := httptest.NewServer(mux)
	t.Cleanup(archive.Close)
	source := Source{Archive: client.New(archive.URL, nil, func() (string, error) { return "anna", nil }), Objects: &results{}, Namespace: plan.Namespace}
	for sealed, want := range map[bool][]Point{true: {{2, 58.1, 8, 0}}, false: {}} {
		state.Sealed = sealed
		made, err := New().Map(t.Context(), source, plan.UID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, made.Nodes[1].Reported); diff != "" {
			t.Errorf("%s of a sealed run (%v) is reported at (-want +got):\n%s", made.Nodes[1].Name, sealed, diff)
		}
	}
}
