package testport

import "testing"

func TestNoPortIsGivenTwiceNorTheNextOne(t *testing.T) {
	given := map[int]bool{}
	for range 1000 {
		port := Free(t)
		if given[port] || given[port-1] || given[port+1] || port < first || port >= last {
			t.Fatalf("port %d is given after %d others", port, len(given))
		}
		given[port] = true
	}
}
