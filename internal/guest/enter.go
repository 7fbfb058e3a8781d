package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/guestconfig"
)

// searchPath of programs in an app's environment, as in containers.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Enter turns this process, which is in new namespaces of mounts and processes, into the agent of the app on descriptor 3.
// It returns only on failure.
func Enter() error {
	runtime.LockOSThread() // privileges belong to the thread that executes the agent
	spec, err := readSpec(os.NewFile(specFD, "app"))
	if err != nil {
		return err
	}
	if err := spec.mountRoot(); err != nil {
		return err
	}
	environment, err := spec.environment()
	if err != nil {
		return err
	}
	if err := dropPrivileges(spec.user(), spec.App.RawSockets); err != nil {
		return err
	}
	unix.Umask(0o022)
	program := agentconfig.BinDir + "/agent"
	return fmt.Errorf("execute %s: %w", program, unix.Exec(program, []string{program, "run"}, environment))
}

func readSpec(file *os.File) (spec appSpec, err error) {
	defer file.Close()
	if err := json.NewDecoder(file).Decode(&spec); err != nil {
		return spec, fmt.Errorf("what to run, on descriptor %d: %w", specFD, err)
	}
	return spec, nil
}

func (s appSpec) environment() ([]string, error) {
	text, err := json.Marshal(s.App.Agent)
	if err != nil {
		return nil, err
	}
	variables := map[string]string{"PATH": searchPath, "HOME": "/", "HOSTNAME": s.App.Agent.Node}
	maps.Copy(variables, s.App.Env)
	variables[agentconfig.Env], variables["VIGNETTE_NODE"] = string(text), s.App.Agent.Node
	var environment []string // each variable once: of two the agent would take the first, and a shell the last
	for name, value := range variables {
		environment = append(environment, name+"="+value)
	}
	return environment, nil
}

// ownEntries of a root are not taken from the machine.
var ownEntries = map[string]bool{"proc": true, "tmp": true, "vignette": true, "lost+found": true}

// mountRoot builds a root of the machine's entries, the platform's programs, and the app's folders and files, and enters it.
func (s appSpec) mountRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("root", s.Root, "tmpfs", unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount a root: %w", err)
	}
	steps := []func() error{s.mirrorRoot, s.mountTools, s.mountFolders}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", s.inRoot("proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := enterRoot(s.Root); err != nil {
		return err
	}
	s.Root = "/" // only now absolute links of the machine lead to what the app sees
	return s.addFiles()
}

func (s appSpec) inRoot(parts ...string) string {
	return filepath.Join(append([]string{s.Root}, parts...)...)
}

// mirrorRoot shows the machine's root entries in the new root.
func (s appSpec) mirrorRoot() error {
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, name := range []string{"proc", "tmp", "vignette"} {
		if err := os.Mkdir(s.inRoot(name), 0o755); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if ownEntries[entry.Name()] {
			continue
		}
		if err := mirror("/"+entry.Name(), s.inRoot(entry.Name()), entry.Type()); err != nil {
			return err
		}
	}
	return nil
}

// mirror shows a folder with its mounts, a file, or a link, at another place.
func mirror(path, at string, kind fs.FileMode) error {
	switch {
	case kind&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(to, at)
	case kind.IsDir():
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		flags := uintptr(unix.MS_BIND | unix.MS_REC)
		if path == "/run" {
			flags = unix.MS_BIND // without the guest's own mounts below it
		}
		return bind(path, at, flags)
	case kind.IsRegular():
		return bindFile(path, at)
	}
	return nil
}

func bind(path, at string, flags uintptr) error {
	if err := unix.Mount(path, at, "", flags, ""); err != nil {
		return fmt.Errorf("show %s as %s: %w", path, at, err)
	}
	return nil
}

// bindFile makes a file to mount on.
func bindFile(path, at string) error {
	f, err := os.OpenFile(at, os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), bind(path, at, unix.MS_BIND))
}

// mountTools shows the agent, and the files of the app's tools folder at the root.
func (s appSpec) mountTools() error {
	bin := s.inRoot(agentconfig.BinDir)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := bindFile(filepath.Join(s.Tools, "agent"), filepath.Join(bin, "agent")); err != nil {
		return err
	}
	if s.App.Tools == "" {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(s.Tools, s.App.Tools))
	if err != nil {
		return fmt.Errorf("programs of the platform for app %s: %w", s.App.Agent.App, err)
	}
	for _, entry := range entries {
		if err := bindFile(filepath.Join(s.Tools, s.App.Tools, entry.Name()), s.inRoot(entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// mountFolders shows the app's own folders where a container has them.
func (s appSpec) mountFolders() error {
	folders := map[string]string{
		agentconfig.RunDir: filepath.Join(s.State, "run"), agentconfig.LogDir: filepath.Join(s.State, "log"), "/tmp": filepath.Join(s.State, "tmp"),
		filepath.Dir(agentconfig.TokenFile): filepath.Join(s.State, "token"), filepath.Dir(agentconfig.ClockFile): s.Clock,
	}
	for at, path := range folders {
		if err := os.MkdirAll(s.inRoot(at), 0o755); err != nil {
			return err
		}
		if err := bind(path, s.inRoot(at), unix.MS_BIND); err != nil {
			return err
		}
	}
	return nil
}

// addFiles writes the app's files to memory and shows each at its path, which is made if the machine does not have it.
func (s appSpec) addFiles() error {
	contents := s.inRoot("vignette", ".files")
	if len(s.App.Files) == 0 {
		return nil
	}
	if err := os.Mkdir(contents, 0o700); err != nil {
		return err
	}
	for i, f := range s.App.Files {
		if err := s.addFile(f, filepath.Join(contents, fmt.Sprint(i))); err != nil {
			return fmt.Errorf("file %s of app %s: %w", f.Path, s.App.Agent.App, err)
		}
	}
	return nil
}

func (s appSpec) addFile(f guestconfig.File, content string) error {
	mode := os.FileMode(0o444)
	if f.Secret {
		mode = 0o440
	}
	if err := os.WriteFile(content, f.Content, mode); err != nil {
		return err
	}
	if err := os.Chown(content, 0, defaultUser); err != nil {
		return err
	}
	at := s.inRoot(f.Path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if err := bindFile(content, at); err != nil {
		return err
	}
	return unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// enterRoot replaces the machine's root (pivot_root(2), "pivot_root(".", ".")").
func enterRoot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the machine's root: %w", err)
	}
	return unix.Chdir("/")
}

// dropPrivileges of the calling thread permanently: a user without capabilities, as in a pod, but for raw sockets where it has them.
func dropPrivileges(user int, rawSockets bool) error {
	for capability := range uintptr(unix.CAP_LAST_CAP + 1) {
		if rawSockets && capability == unix.CAP_NET_RAW {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // older kernels have fewer
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	if err := unix.Setgroups([]int{defaultUser}); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	if rawSockets { // capabilities(7): a change of the user would clear them all
		if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("keep the right to raw sockets: %w", err)
		}
	}
	if err := errors.Join(unix.Setresgid(defaultUser, defaultUser, defaultUser), unix.Setresuid(user, user, user)); err != nil {
		return fmt.Errorf("user %d: %w", user, err)
	}
	if rawSockets {
		if err := keepRawSockets(); err != nil {
			return fmt.Errorf("right to raw sockets: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	return nil
}

// keepRawSockets leaves the calling thread CAP_NET_RAW alone, also in the programs that it executes.
func keepRawSockets() error {
	const only = uint32(1) << unix.CAP_NET_RAW
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	sets := [2]unix.CapUserData{{Effective: only, Permitted: only, Inheritable: only}} // the second has capabilities from 32 on
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_RAW, 0, 0)
}
