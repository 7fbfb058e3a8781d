package orderofbattle

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// battalion has two companies with networks of their own, and a platoon without one.
func battalion() []v1alpha1.Unit {
	return []v1alpha1.Unit{
		{Name: "platoon", Within: "company-2", Commander: 15, Platforms: "15-17"},
		{Name: "battalion", Commander: 11, Network: "bn"},
		{Name: "company-1", Within: "battalion", Commander: 1, Platforms: "1-4", Network: "co-1"},
		{Name: "company-2", Within: "battalion", Commander: 12, Platforms: "11-14", Network: "co-2"},
	}
}

func TestANetworkHasItsUnitAndTheCommandersBelow(t *testing.T) {
	o, err := Read(battalion())
	if err != nil {
		t.Fatal(err)
	}
	want := []Network{{"bn", []int{1, 11, 12}}, {"co-1", []int{1, 2, 3, 4}}, {"co-2", []int{11, 12, 13, 14, 15, 16, 17}}}
	if diff := cmp.Diff(want, o.Networks); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for platform, want := range map[int][]string{1: {"bn", "co-1"}, 2: {"co-1"}, 12: {"bn", "co-2"}, 16: {"co-2"}, 99: nil} {
		if got := o.NetworksOf(platform); !slices.Equal(got, want) {
			t.Errorf("platform %d is on %v; want %v", platform, got, want)
		}
	}
}

func TestUnitsComeBelowThoseThatCommandThem(t *testing.T) {
	o, err := Read(battalion())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	o.Walk(func(unit *Unit, depth int) { got = append(got, strings.Repeat("-", depth)+unit.Name) })
	if want := []string{"battalion", "-company-1", "-company-2", "--platoon"}; !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
	if got, want := o.Units[0].All(), []int{1, 2, 3, 4, 11, 12, 13, 14, 15, 16, 17}; !slices.Equal(got, want) {
		t.Errorf("the battalion has %v; want %v", got, want)
	}
}

func TestAnImpossibleOrderOfBattleIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(units []v1alpha1.Unit)
		want   string
	}{
		"superior":  {func(u []v1alpha1.Unit) { u[2].Within = "brigade" }, `unit company-1: within is "brigade"`},
		"circle":    {func(u []v1alpha1.Unit) { u[1].Within = "platoon" }, "4 units are within each other in a circle"},
		"name":      {func(u []v1alpha1.Unit) { u[3].Name = "company-1" }, "two units have the name company-1"},
		"platforms": {func(u []v1alpha1.Unit) { u[2].Platforms = "4-1" }, `unit company-1: platforms "4-1": must be ascending`},
		"shared":    {func(u []v1alpha1.Unit) { u[2].Platforms = "1-4,17" }, "unit company-1: platform 17 is of unit platoon too"},
		"network":   {func(u []v1alpha1.Unit) { u[3].Network = "co-1" }, "unit company-2: network co-1 is another unit's"},
	} {
		units := battalion()
		c.change(units)
		if _, err := Read(units); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
}
