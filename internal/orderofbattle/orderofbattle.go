// Package orderofbattle reads the order of battle of a Scenario: who commands whom, and who is on which network.
package orderofbattle

import (
	"fmt"
	"slices"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Unit is a unit with those that it commands.
type Unit struct {
	Name      string
	Commander int
	// Platforms are the unit's own.
	Platforms []int
	// Network is empty if the unit has none of its own.
	Network string
	Units   []*Unit
}

// Network is a network with its members, ascending.
type Network struct {
	Name    string
	Members []int
}

// Order is an order of battle.
type Order struct {
	// Units are those that nobody commands.
	Units    []*Unit
	Networks []Network
}

// Read reads an order of battle. Errors name the unit.
func Read(units []v1alpha1.Unit) (*Order, error) {
	o, known := &Order{}, map[string]*Unit{}
	owner := map[int]string{}
	for _, given := range units {
		unit, err := read(given, owner)
		if err != nil {
			return nil, err
		}
		if known[unit.Name] != nil {
			return nil, fmt.Errorf("orderOfBattle: two units have the name %s", unit.Name)
		}
		known[unit.Name] = unit
	}
	for _, given := range units {
		superior := known[given.Within]
		switch {
		case given.Within == "":
			o.Units = append(o.Units, known[given.Name])
		case superior == nil:
			return nil, fmt.Errorf("orderOfBattle: unit %s: within is %q: must be the name of another unit", given.Name, given.Within)
		default:
			superior.Units = append(superior.Units, known[given.Name])
		}
	}
	if reached := count(o.Units); reached != len(units) {
		return nil, fmt.Errorf("orderOfBattle: %d units are within each other in a circle: must be within a unit that nobody commands", len(units)-reached)
	}
	return o, o.connect()
}

// read reads a unit alone. owner has the unit of each platform.
func read(given v1alpha1.Unit, owner map[int]string) (*Unit, error) {
	platforms, err := v1alpha1.ParsePlatforms(given.Platforms)
	if err != nil {
		return nil, fmt.Errorf("orderOfBattle: unit %s: %w", given.Name, err)
	}
	for _, platform := range platforms {
		if other := owner[platform]; other != "" {
			return nil, fmt.Errorf("orderOfBattle: unit %s: platform %d is of unit %s too: must be of one", given.Name, platform, other)
		}
		owner[platform] = given.Name
	}
	return &Unit{Name: given.Name, Commander: int(given.Commander), Platforms: platforms, Network: given.Network}, nil
}

func count(units []*Unit) int {
	n := len(units)
	for _, unit := range units {
		n += count(unit.Units)
	}
	return n
}

// connect finds the networks and their members.
func (o *Order) connect() error {
	var err error
	o.Walk(func(unit *Unit, _ int) {
		if unit.Network == "" {
			return
		}
		if slices.ContainsFunc(o.Networks, func(n Network) bool { return n.Name == unit.Network }) && err == nil {
			err = fmt.Errorf("orderOfBattle: unit %s: network %s is another unit's: must be its own, or none to be on the other's", unit.Name, unit.Network)
		}
		members := unit.members()
		slices.Sort(members)
		o.Networks = append(o.Networks, Network{unit.Network, slices.Compact(members)})
	})
	return err
}

// members returns who is on a unit's network, unsorted.
func (u *Unit) members() []int {
	all := append([]int{u.Commander}, u.Platforms...)
	for _, below := range u.Units {
		if below.Network == "" {
			all = append(all, below.members()...)
		} else {
			all = append(all, below.Commander)
		}
	}
	return all
}

// All returns the platforms of a unit and of all that it commands, ascending.
func (u *Unit) All() []int {
	all := slices.Clone(u.Platforms)
	for _, below := range u.Units {
		all = append(all, below.All()...)
	}
	slices.Sort(all)
	return all
}

// Walk calls do for each unit, superiors first, with the number of its superiors.
func (o *Order) Walk(do func(unit *Unit, depth int)) { walk(o.Units, 0, do) }

func walk(units []*Unit, depth int, do func(*Unit, int)) {
	for _, unit := range units {
		do(unit, depth)
		walk(unit.Units, depth+1, do)
	}
}

// NetworksOf returns the names of a platform's networks, in the order of the units. A gateway has several.
func (o *Order) NetworksOf(platform int) (names []string) {
	for _, network := range o.Networks {
		if _, member := slices.BinarySearch(network.Members, platform); member {
			names = append(names, network.Name)
		}
	}
	return names
}
