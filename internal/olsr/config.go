package olsr

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Defaults of RFC 6130 section 5.3, RFC 7181 section 5.4 and RFC 3626 section 18 alike.
const (
	DefaultHello = 2 * time.Second
	DefaultTC    = 5 * time.Second
	// DefaultRouteInterval is that of the common daemon olsrd2. The first change after a while is not
	// delayed.
	DefaultRouteInterval = time.Second
	validityFactor       = 3
	defaultMTU           = 1232
	// minimumMTU is IPv4's least (RFC 791) without the headers of IP and UDP.
	minimumMTU = 68 - 28
	// maxInterval is well below the longest time a message can state.
	maxInterval = 24 * time.Hour
	minInterval = 10 * time.Millisecond
)

// WithDefaults returns the configuration with every default filled in. Errors name the field.
func (c Config) WithDefaults() (Config, error) {
	c.Interfaces = append([]Interface(nil), c.Interfaces...)
	if len(c.Interfaces) == 0 {
		return c, fmt.Errorf("interfaces: there is none")
	}
	for i := range c.Interfaces {
		if err := c.Interfaces[i].check(c.Interfaces[:i]); err != nil {
			return c, fmt.Errorf("interfaces[%d]: %w", i, err)
		}
	}
	orElse(&c.Hello, DefaultHello)
	orElse(&c.HelloValidity, validityFactor*c.Hello)
	orElse(&c.TC, DefaultTC)
	orElse(&c.TCValidity, validityFactor*c.TC)
	orElse(&c.RouteInterval, DefaultRouteInterval)
	if err := checkTimes([]limitedTime{
		{"hello", c.Hello, minInterval, maxInterval}, {"helloValidity", c.HelloValidity, c.Hello, maxInterval},
		{"tc", c.TC, minInterval, maxInterval}, {"tcValidity", c.TCValidity, c.TC, maxInterval},
		{"routeInterval", c.RouteInterval, 0, maxInterval},
	}); err != nil {
		return c, err
	}
	for n := range c.Interfaces {
		if err := c.Interfaces[n].setTimes(&c); err != nil {
			return c, err
		}
	}
	for name, w := range map[string]**int{"floodingWillingness": &c.FloodingWillingness, "routingWillingness": &c.RoutingWillingness} {
		if *w == nil {
			standard := WillDefault
			*w = &standard
		}
		if **w < WillNever || **w > WillAlways {
			return c, fmt.Errorf("%s: %d is not between %d and %d", name, **w, WillNever, WillAlways)
		}
	}
	if err := c.checkTopologies(); err != nil {
		return c, err
	}
	return c, checkAttached(c.Attached, c.Interfaces[0].Address)
}

func (c *Config) checkTopologies() error {
	if len(c.Topologies) >= MaxTopologies {
		return fmt.Errorf("topologies: %d are more than %d", len(c.Topologies), MaxTopologies-1)
	}
	has := func(among []Topology, kind uint8) bool {
		return slices.ContainsFunc(among, func(t Topology) bool { return t.Type == kind })
	}
	for n, t := range c.Topologies {
		if t.Type == metricExtension || has(c.Topologies[:n], t.Type) {
			return fmt.Errorf("topologies[%d].type: %d is that of another topology", n, t.Type)
		}
	}
	for _, i := range c.Interfaces {
		for _, kind := range i.Topologies {
			if !has(c.Topologies, kind) {
				return fmt.Errorf("topologies: none has type %d, of interface %s", kind, i.Name)
			}
		}
	}
	return nil
}

func orElse(d *time.Duration, otherwise time.Duration) {
	if *d == 0 {
		*d = otherwise
	}
}

// setTimes fills in the interface's times: by default the Config's, whose own defaults are filled in.
func (i *Interface) setTimes(c *Config) error {
	set := func(interval, validity *time.Duration, all, allValidity time.Duration) {
		if *interval == 0 {
			*interval = all
			orElse(validity, allValidity)
		}
		orElse(validity, validityFactor**interval)
	}
	set(&i.Hello, &i.HelloValidity, c.Hello, c.HelloValidity)
	set(&i.TC, &i.TCValidity, c.TC, c.TCValidity)
	err := checkTimes([]limitedTime{
		{"hello", i.Hello, minInterval, maxInterval}, {"helloValidity", i.HelloValidity, i.Hello, maxInterval},
		{"tc", i.TC, minInterval, maxInterval}, {"tcValidity", i.TCValidity, i.TC, maxInterval},
	})
	if err != nil {
		return fmt.Errorf("%w, on interface %s", err, i.Name)
	}
	return nil
}

// limitedTime is a field with its bounds.
type limitedTime struct {
	name            string
	value, at, most time.Duration
}

func checkTimes(all []limitedTime) error {
	for _, f := range all {
		if f.value < f.at || f.value > f.most {
			return fmt.Errorf("%s: %v is not between %v and %v", f.name, f.value, f.at, f.most)
		}
	}
	return nil
}

// ShortestHello of the interfaces, after defaults are filled in. It determines the jitter of messages that go
// over all interfaces.
func (c *Config) ShortestHello() time.Duration {
	return slices.MinFunc(c.Interfaces, byHello).Hello
}

// LongestHello of the interfaces, after defaults are filled in.
func (c *Config) LongestHello() time.Duration {
	return slices.MaxFunc(c.Interfaces, byHello).Hello
}

func byHello(a, b Interface) int { return cmp.Compare(a.Hello, b.Hello) }

// TCSchedule has the interfaces, by index, that share an interval and a validity of TCs.
type TCSchedule struct {
	Interval, Validity time.Duration
	Interfaces         []int
}

// TCSchedules of the interfaces, after defaults are filled in; each interface is in one.
func (c *Config) TCSchedules() (all []TCSchedule) {
	for n, i := range c.Interfaces {
		at := slices.IndexFunc(all, func(s TCSchedule) bool { return s.Interval == i.TC && s.Validity == i.TCValidity })
		if at < 0 {
			at = len(all)
			all = append(all, TCSchedule{Interval: i.TC, Validity: i.TCValidity})
		}
		all[at].Interfaces = append(all[at].Interfaces, n)
	}
	return all
}

// LongestTC of the interfaces, after defaults are filled in.
func (c *Config) LongestTC() (longest time.Duration) {
	for _, i := range c.Interfaces {
		longest = max(longest, i.TC)
	}
	return longest
}

// LongestTCValidity of the interfaces, after defaults are filled in.
func (c *Config) LongestTCValidity() (longest time.Duration) {
	for _, i := range c.Interfaces {
		longest = max(longest, i.TCValidity)
	}
	return longest
}

// TCsWithin bounds the TCs that a node sends within a time, after defaults are filled in.
func (c *Config) TCsWithin(age time.Duration) (count uint16) {
	for _, s := range c.TCSchedules() {
		count += uint16(min(age/s.Interval, 1<<12)) + 1
	}
	return count
}

func (i *Interface) check(before []Interface) error {
	if !i.Address.IsValid() || i.Address.IsUnspecified() || i.Address.IsMulticast() || i.Address.Is4In6() {
		return fmt.Errorf("address: %v is not a node's", i.Address)
	}
	for _, other := range before {
		if other.Address == i.Address {
			return fmt.Errorf("address: %v is that of another interface", i.Address)
		}
		if other.Address.Is4() != i.Address.Is4() {
			return fmt.Errorf("address: %v is of another family than %v", i.Address, other.Address)
		}
	}
	if i.MTU == 0 {
		i.MTU = defaultMTU
	}
	if i.MTU < minimumMTU {
		return fmt.Errorf("mtu: %d is less than %d", i.MTU, minimumMTU)
	}
	return nil
}

func checkAttached(attached []Attached, address netip.Addr) error {
	for i, a := range attached {
		if !a.Prefix.IsValid() || a.Prefix.Masked() != a.Prefix || a.Prefix.Addr().Is4() != address.Is4() {
			return fmt.Errorf("attached[%d].prefix: %v is not a network of the interfaces' family", i, a.Prefix)
		}
		if a.Hops < 0 || a.Hops > 255 {
			return fmt.Errorf("attached[%d].hops: %d is not between 0 and 255", i, a.Hops)
		}
	}
	return nil
}
