package mapdata

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/runapi/client"
)

const (
	// reportsFile of a run's results, with the positions that messages report.
	reportsFile = "results/reports.csv"
	// maxReportsBytes that are read of it: more than a million positions.
	maxReportsBytes = 128 << 20
)

// report is a position that a message reports, with the time at which the first subscriber on another node had it.
type report struct {
	made, received int64
	point          Point
}

// reported are the positions that nodes have reported, by node: each holds from when a subscriber on another node had it, if it is the
// freshest by then. None before there are results, and of earlier versions' results.
func reported(ctx context.Context, s Source, r *run) (map[string][]Point, error) {
	if !r.sealed || r.plan.T0 == nil {
		return nil, nil
	}
	file, err := s.Archive.File(ctx, r.plan.UID, reportsFile)
	if client.HasStatus(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reports, err := readReports(io.LimitReader(file, maxReportsBytes), r.withOwnPlatforms(), *r.plan.T0)
	points := map[string][]Point{}
	for node, some := range reports {
		points[node] = freshest(some, maxPoints/len(r.topology.Nodes))
	}
	return points, err
}

// withOwnPlatforms are the instances whose positions are not their node's.
func (r *run) withOwnPlatforms() map[string]bool {
	found := map[string]bool{}
	for _, node := range r.plan.Nodes {
		for _, app := range node.Apps {
			for i, name := range app.Instances {
				found[name] = i < len(app.Platforms)
			}
		}
	}
	return found
}

// errReports says that the table is not as this version writes it.
var errReports = errors.New(reportsFile + " has a line that is no position")

// readReports reads the table up to its first broken line, which is an error.
func readReports(table io.Reader, others map[string]bool, t0 time.Time) (map[string][]report, error) {
	rows := csv.NewReader(table)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return nil, errReports
	}
	column := map[string]int{}
	for i, name := range header {
		column[name] = i
	}
	for _, name := range []string{"ts", "publisher", "node", "latitudeDegrees", "longitudeDegrees", "received"} {
		if _, known := column[name]; !known {
			return nil, nil // of an earlier version
		}
	}
	found := map[string][]report{}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, errReports
		}
		if row[column["received"]] == "" || others[row[column["publisher"]]] {
			continue
		}
		made, err1 := strconv.ParseInt(row[column["ts"]], 10, 64)
		received, err2 := strconv.ParseInt(row[column["received"]], 10, 64)
		latitude, err3 := strconv.ParseFloat(row[column["latitudeDegrees"]], 64)
		longitude, err4 := strconv.ParseFloat(row[column["longitudeDegrees"]], 64)
		if errors.Join(err1, err2, err3, err4) != nil {
			return found, errReports
		}
		at := float64(received-t0.UnixNano()) / float64(time.Second)
		node := row[column["node"]]
		found[node] = append(found[node], report{made, received, Point{at, latitude, longitude, 0}})
	}
}

// freshest are the points of reports that no later one had overtaken, at most so many: beyond that each of some number.
func freshest(reports []report, most int) []Point {
	slices.SortFunc(reports, func(a, b report) int { return cmp.Or(cmp.Compare(a.received, b.received), cmp.Compare(a.made, b.made)) })
	var points []Point
	newest := int64(0)
	for _, one := range reports {
		if one.made >= newest {
			newest = one.made
			points = append(points, one.point)
		}
	}
	every := (len(points)-1)/max(most, 1) + 1
	kept := points[:0]
	for i := 0; i < len(points); i += every {
		kept = append(kept, points[i])
	}
	return kept
}
