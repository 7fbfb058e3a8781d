//go:build e2e && vm

package e2e

import "testing"

func TestTheTutorialOfAnOwnVMDoesWhatItSays(t *testing.T) {
	needsKubeVirt(t)
	follow(t, "own-app-and-vm.md", "")
}
