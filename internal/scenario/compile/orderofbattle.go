package compile

import (
	"fmt"
	"slices"

	"vignette.dev/vignette/internal/orderofbattle"
	"vignette.dev/vignette/internal/scenario/synthetic"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkOrderOfBattle returns what is impossible in the order of battle, whatever the files have.
func checkOrderOfBattle(spec *v1alpha1.ScenarioSpec) error {
	if len(spec.OrderOfBattle) == 0 || spec.Synthetic == nil {
		_, err := orderofbattle.Read(spec.OrderOfBattle)
		return err
	}
	count, _ := synthetic.Size(*spec.Synthetic)
	platforms := make([]int, count)
	for i := range platforms {
		platforms[i] = i + 1
	}
	return checkMembers(spec.OrderOfBattle, platforms)
}

// checkMembers returns an error for an order of battle with a platform that the scenario does not have.
func checkMembers(units []v1alpha1.Unit, platforms []int) error {
	order, err := orderofbattle.Read(units)
	if err != nil {
		return err
	}
	order.Walk(func(unit *orderofbattle.Unit, _ int) {
		for _, platform := range append([]int{unit.Commander}, unit.Platforms...) {
			if _, known := slices.BinarySearch(platforms, platform); !known && err == nil {
				err = fmt.Errorf("orderOfBattle: unit %s: platform %d is not in the scenario, which has %s", unit.Name, platform, v1alpha1.PlatformRanges(platforms))
			}
		}
	})
	return err
}
