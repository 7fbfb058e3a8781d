package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/vishvananda/netlink"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/veth"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// oneEMANE is one process of EMANE's for all nodes, in a namespace of its own. Its NEMs hand their transmissions to each other within it, where
// otherwise each of as many processes as there are nodes takes every datagram.
type oneEMANE struct {
	emaneBed
	namespace *os.File
}

func newOneEMANE(s *settings, spec *v1alpha1.RadioNetworkSpec, paths *scenario.Scenario) (bed, error) {
	b := &oneEMANE{emaneBed: emaneBed{settings: s}}
	b.hosts = func(int) *os.File { return b.namespace }
	if err := b.start(spec, paths); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *oneEMANE) start(spec *v1alpha1.RadioNetworkSpec, paths *scenario.Scenario) (err error) {
	if err := b.prepare(spec); err != nil {
		return err
	}
	if b.namespace, err = b.plug(1); err != nil {
		return err
	}
	var platform []byte
	for i := range spec.Members {
		if platform, err = b.addTo(platform, spec, &spec.Members[i]); err != nil {
			return fmt.Errorf("%s: %w", spec.Members[i].Node, err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.directory, emane.Platform), platform, 0o644); err != nil { //nolint:gosec // read by EMANE
		return err
	}
	if err := netns.Do(b.namespace, func() error { return b.begin(1, b.directory) }); err != nil {
		return err
	}
	return b.tell(spec, paths)
}

// addTo the process a node: its namespace with one end of a veth, the other one beside the process, its files, and its part of the platform's.
func (b *oneEMANE) addTo(platform []byte, spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member) ([]byte, error) {
	namespace, err := radiotest.Namespace()
	if err != nil {
		return nil, err
	}
	b.all = append(b.all, node{namespace, radioDevice})
	nem := int(member.NEM)
	i, err := podnet.ParseInterface(radioDevice, fmt.Sprintf("02:02:00:00:%02x:%02x", nem>>8, nem&255), member.Address, int(spec.MTU), true)
	if err != nil {
		return nil, err
	}
	const temporary = "new0"
	parked := veth.Parked(strconv.Itoa(nem))
	err = netns.Do(b.namespace, func() error {
		return errors.Join(veth.Create(namespace, temporary, parked, i), veth.Place(parked, b.namespace, emane.Interface(member.NEM)))
	})
	if err != nil {
		return nil, err
	}
	err = netns.Do(namespace, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		_, _, failed := podnet.SetUp(temporary, i)
		return errors.Join(failed, netlink.LinkSetUp(lo))
	})
	if err != nil {
		return nil, err
	}
	files, err := b.write(spec, member, emane.Process{Directory: filepath.Join(b.directory, strconv.Itoa(nem)), DTDs: b.dtds(), Device: otaDevice,
		Interface: emane.Interface(member.NEM), Raw: true, HostOnly: true})
	if err != nil {
		return nil, err
	}
	// The platform's files are all in one folder: their names for each other are tokens, without a folder in them.
	prefix := strconv.Itoa(nem) + "."
	for _, f := range files {
		text := bytes.ReplaceAll(f.Text, []byte(`definition="`), []byte(`definition="`+prefix))
		if f.Name == emane.Platform {
			platform = joined(platform, text)
		} else if err := os.WriteFile(filepath.Join(b.directory, prefix+f.Name), text, 0o644); err != nil { //nolint:gosec // read by EMANE
			return nil, err
		}
	}
	return platform, nil
}

// joined is a platform of all NEMs so far and that of another one.
func joined(platform, other []byte) []byte {
	const end = "</platform>"
	begin := bytes.Index(other, []byte("  <nem "))
	if platform == nil {
		return other
	}
	return append(bytes.TrimSuffix(bytes.TrimRight(platform, "\n"), []byte(end)), other[begin:]...)
}

func (b *oneEMANE) close() error {
	err := b.emaneBed.close()
	if b.namespace != nil {
		err = errors.Join(err, b.namespace.Close())
	}
	return err
}
