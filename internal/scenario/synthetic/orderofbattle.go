package synthetic

import (
	"fmt"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// OrderOfBattle returns that of AnglovaLikeBattalion. Companies have twelve vehicles of command and logistics and four platoons of three;
// staff and mortars ten and four, logistics no platoons.
func OrderOfBattle() []v1alpha1.Unit {
	all := []v1alpha1.Unit{{Name: "battalion", Commander: 97, Network: "bn"}}
	kinds := []string{"tank", "tank", "infantry", "infantry", "staff", "logistics"}
	first := int32(1)
	for k, s := range sectors {
		number, name := k+1, fmt.Sprintf("%s-%d", kinds[k], k+1)
		vehicles := int32(s.vehicles)
		company := v1alpha1.Unit{Name: name, Within: "battalion", Commander: first, Network: fmt.Sprintf("co-%d", number)}
		if kinds[k] == "staff" {
			company.Commander++ // the battalion's commander is with the staff
		}
		own := vehicles - 12
		if kinds[k] == "logistics" {
			own = vehicles
		}
		company.Platforms = span(first, own)
		all = append(all, company)
		for i := own; i < vehicles; i += 3 {
			all = append(all, v1alpha1.Unit{Name: fmt.Sprintf("platoon-%d-%d", number, (i-own)/3+1), Within: name, Commander: first + i, Platforms: span(first+i, 3)})
		}
		first += vehicles
	}
	return append(all,
		v1alpha1.Unit{Name: "uav", Within: "battalion", Commander: first, Platforms: span(first, 6), Network: "uav"},
		v1alpha1.Unit{Name: "support", Within: "logistics-6", Commander: first + 6, Platforms: span(first+6, 8)},
		v1alpha1.Unit{Name: "foot-3", Within: "infantry-3", Commander: 50, Platforms: span(first+14, 36), Network: "foot-3"},
		v1alpha1.Unit{Name: "foot-4", Within: "infantry-4", Commander: 74, Platforms: span(first+50, 36), Network: "foot-4"})
}

func span(first, count int32) string { return fmt.Sprintf("%d-%d", first, first+count-1) }
