package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/vishvananda/netlink"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/veth"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// sharedEMANE is EMANE with several nodes per process, each process in its own namespace. Its NEMs exchange
// transmissions within a process. With a process per node, each process takes every datagram.
type sharedEMANE struct {
	emaneBed
	namespaces []*os.File
}

// newSharedEMANE starts a process for each count of members, in their order, and one for the remaining ones.
func newSharedEMANE(s *settings, spec *v1alpha1.RadioNetworkSpec, paths *scenario.Scenario, counts ...int) (bed, error) {
	b := &sharedEMANE{emaneBed: emaneBed{settings: s}}
	b.hosts = func(i int) *os.File { return b.namespaces[i] }
	if err := b.start(spec, paths, counts); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *sharedEMANE) start(spec *v1alpha1.RadioNetworkSpec, paths *scenario.Scenario, counts []int) (err error) {
	if err := b.prepare(spec); err != nil {
		return err
	}
	left := spec.Members
	for _, count := range append(counts, len(left)) {
		if count = min(count, len(left)); count == 0 {
			break
		}
		if err := b.share(spec, left[:count]); err != nil {
			return err
		}
		left = left[count:]
	}
	return b.publishScenario(spec, paths)
}

// share starts a process for some members.
func (b *sharedEMANE) share(spec *v1alpha1.RadioNetworkSpec, members []v1alpha1.Member) (err error) {
	number := len(b.namespaces) + 1
	namespace, err := b.newNamespace(number)
	if err != nil {
		return err
	}
	b.namespaces = append(b.namespaces, namespace)
	directory := filepath.Join(b.directory, "process-"+strconv.Itoa(number))
	if err := os.Mkdir(directory, 0o755); err != nil { //nolint:gosec // read by EMANE
		return err
	}
	var platform []byte
	for i := range members {
		if platform, err = b.addTo(platform, directory, spec, &members[i]); err != nil {
			return fmt.Errorf("%s: %w", members[i].Node, err)
		}
	}
	if err := os.WriteFile(filepath.Join(directory, emane.Platform), platform, 0o644); err != nil { //nolint:gosec // read by EMANE
		return err
	}
	return netns.Do(namespace, func() error { return b.startProcess(number, len(members), directory) })
}

// splitProcessors gives the first process a processor of its own, and the second one the others.
func (b *sharedEMANE) splitProcessors() error {
	processors, err := clock.Processors()
	if err != nil || len(b.processes) != 2 || len(processors) < 2 {
		return err
	}
	for i, some := range [][]int{processors[:1], processors[1:]} {
		if err := b.processes[i].bind(some); err != nil {
			return err
		}
	}
	return nil
}

// bind binds all threads of a process to processors.
func (p *process) bind(processors []int) error {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.command.Process.Pid))
	for _, task := range tasks {
		thread, wrong := strconv.Atoi(task.Name())
		err = errors.Join(err, wrong, clock.Bind(thread, processors...))
	}
	return err
}

// addTo adds a node to a process: its namespace with one end of a veth, the other end beside the process, its
// files, and its part of the platform's.
func (b *sharedEMANE) addTo(platform []byte, directory string, spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member) ([]byte, error) {
	namespace, err := radiotest.Namespace()
	if err != nil {
		return nil, err
	}
	b.all = append(b.all, node{namespace, radioDevice})
	host, nem := b.namespaces[len(b.namespaces)-1], int(member.NEM)
	i, err := podnet.ParseInterface(radioDevice, fmt.Sprintf("02:02:00:00:%02x:%02x", nem>>8, nem&255), member.Address, int(spec.MTU), true)
	if err != nil {
		return nil, err
	}
	const temporary = "new0"
	parked := veth.ParkedName(strconv.Itoa(nem))
	err = netns.Do(host, func() error {
		return errors.Join(veth.Create(namespace, temporary, parked, i), veth.Place(parked, host, emane.Interface(member.NEM)))
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
	files, err := b.write(spec, member, emane.Process{Directory: filepath.Join(directory, strconv.Itoa(nem)), DTDs: b.dtds(), Device: otaDevice,
		Interface: emane.Interface(member.NEM), Raw: true})
	if err != nil {
		return nil, err
	}
	// The platform's files are all in one folder, because they refer to each other by names without a folder.
	prefix := strconv.Itoa(nem) + "."
	for _, f := range files {
		text := bytes.ReplaceAll(f.Text, []byte(`definition="`), []byte(`definition="`+prefix))
		if f.Name == emane.Platform {
			platform = joined(platform, text)
		} else if err := os.WriteFile(filepath.Join(directory, prefix+f.Name), text, 0o644); err != nil { //nolint:gosec // read by EMANE
			return nil, err
		}
	}
	return platform, nil
}

// joined returns a platform with the NEMs of both.
func joined(platform, other []byte) []byte {
	const end = "</platform>"
	begin := bytes.Index(other, []byte("  <nem "))
	if platform == nil {
		return other
	}
	return append(bytes.TrimSuffix(bytes.TrimRight(platform, "\n"), []byte(end)), other[begin:]...)
}

func (b *sharedEMANE) close() error {
	err := b.emaneBed.close()
	for _, namespace := range b.namespaces {
		err = errors.Join(err, namespace.Close())
	}
	return err
}
