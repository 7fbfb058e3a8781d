package dataplane

import (
	"errors"
	"fmt"
)

// PortSet has ports of one network whose nodes are elsewhere, by NEM id: at other hosts, or in neighbours.
type PortSet struct {
	attached map[int]attachedPort
}

type attachedPort struct {
	Port
	id PortID
}

// where names a port's host in an error; empty for this one.
func (p *Port) where() string {
	if p.Host == "" {
		return ""
	}
	return " at host " + p.Host
}

// Set attaches and detaches ports until the set has the wanted ones. An error names those that are not attached.
func (s *PortSet) Set(plane Plane, wanted map[int]Port) (err error) {
	for nem, p := range s.attached {
		if wanted[nem] == p.Port {
			continue
		}
		if _, detachErr := plane.Detach(p.id); detachErr != nil {
			err = errors.Join(err, fmt.Errorf("detach %s%s: %w", p.Name, p.where(), detachErr))
		}
		delete(s.attached, nem)
	}
	for nem, p := range wanted {
		if _, attached := s.attached[nem]; attached {
			continue
		}
		id, attachErr := plane.Attach(&p)
		if attachErr != nil {
			err = errors.Join(err, fmt.Errorf("attach %s%s: %w", p.Name, p.where(), attachErr))
			continue
		}
		if s.attached == nil {
			s.attached = map[int]attachedPort{}
		}
		s.attached[nem] = attachedPort{p, id}
	}
	return err
}
