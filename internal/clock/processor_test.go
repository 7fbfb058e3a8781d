package clock

import "testing"

func TestVirtualProcessorsAreToldByTheirFlags(t *testing.T) {
	for name, c := range map[string]struct {
		cpuinfo string
		want    bool
	}{
		"of a hypervisor":       {"processor\t: 0\nflags\t\t: fpu tsc hypervisor avx2\n", true},
		"of a bare machine":     {"processor\t: 0\nflags\t\t: fpu tsc avx2\n\nprocessor\t: 1\nflags\t\t: fpu tsc avx2\n", false},
		"without flags, as ARM": {"processor\t: 0\nFeatures\t: fp asimd\n", true},
		"not told":              {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := virtual(c.cpuinfo); got != c.want {
				t.Errorf("virtual: %v; want %v", got, c.want)
			}
		})
	}
}
