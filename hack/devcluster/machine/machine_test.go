package machine

import (
	"os"
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

func TestAFileIsLookedForByItsPathAndAProgramByItsName(t *testing.T) {
	header := t.TempDir() + "/some.h"
	if present(header) {
		t.Error("a file that is not there counts as present")
	}
	if err := os.WriteFile(header, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if !present(header) {
		t.Error("a file that cannot be run does not count as present")
	}
	if !present("sh") || present("no-such-program") {
		t.Error("programs are not looked for in PATH")
	}
}
