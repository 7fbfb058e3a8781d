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
	minimumMTU           = 256
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
	orElse := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
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
		i := &c.Interfaces[n]
		if i.Hello == 0 {
			i.Hello = c.Hello
			orElse(&i.HelloValidity, c.HelloValidity)
		}
		orElse(&i.HelloValidity, validityFactor*i.Hello)
		if err := checkTimes([]limitedTime{{"hello", i.Hello, minInterval, maxInterval}, {"helloValidity", i.HelloValidity, i.Hello, maxInterval}}); err != nil {
			return c, fmt.Errorf("%w, on interface %s", err, i.Name)
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
	if h := c.Hysteresis; h != nil && !(h.Scaling > 0 && h.Scaling <= 1 && h.Reject >= 0 && h.Reject < h.Accept && h.Accept <= 1) {
		return c, fmt.Errorf("hysteresis: scaling %v, reject %v, accept %v: 0 < scaling ≤ 1 and 0 ≤ reject < accept ≤ 1 must hold", h.Scaling, h.Reject, h.Accept)
	}
	return c, checkAttached(c.Attached, c.Interfaces[0].Address)
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
