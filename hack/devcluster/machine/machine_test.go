package machine

import (
	"reflect"
	"testing"
)

func TestOnlyThePackagesOfMissingProgramsAreInstalledEachOnce(t *testing.T) {
	programs := map[string]string{"ctr": "containerd", "containerd": "containerd", "runc": "runc", "nft": "nftables"}
	got := missingPackages(programs, func(program string) bool { return program == "runc" })
	if want := []string{"containerd", "nftables"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAProgramFromAnotherSourceCounts(t *testing.T) {
	if got := missingPackages(packages, func(string) bool { return true }); got != nil {
		t.Errorf("got %q", got)
	}
}
