package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/guestconfig"
)

// searchPath of programs in an app's environment, as containers have it.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Enter makes of this process, which is in new namespaces of mounts and processes, the agent of the app that descriptor 3 describes. It
// returns only where that fails.
func Enter() error {
	runtime.LockOSThread() // privileges are the thread's that executes the agent
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
	if err := dropPrivileges(spec.user()); err != nil {
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
	environment := []string{"PATH=" + searchPath, "HOME=/", "HOSTNAME=" + s.App.Agent.Node}
	for name, value := range s.App.Env {
		environment = append(environment, name+"="+value)
	}
	return append(environment, agentconfig.Env+"="+string(text), "VIGNETTE_NODE="+s.App.Agent.Node), nil
}

// ours are the entries of a root that are not the machine's.
var ours = map[string]bool{"proc": true, "tmp": true, "vignette": true, "lost+found": true}

// mountRoot makes a root of what the machine has, the platform's programs, and the app's own folders and files, and enters it.
func (s appSpec) mountRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("root", s.Root, "tmpfs", unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount a root: %w", err)
	}
	steps := []func() error{s.mountMachine, s.mountTools, s.mountFolders, s.addFiles}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", s.at("proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return enterRoot(s.Root)
}

func (s appSpec) at(parts ...string) string {
	return filepath.Join(append([]string{s.Root}, parts...)...)
}

// mountMachine shows what the machine has at its root.
func (s appSpec) mountMachine() error {
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, name := range []string{"proc", "tmp", "vignette"} {
		if err := os.Mkdir(s.at(name), 0o755); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if ours[entry.Name()] {
			continue
		}
		if err := show("/"+entry.Name(), s.at(entry.Name()), entry.Type()); err != nil {
			return err
		}
	}
	return nil
}

// show a folder with what is mounted in it, a file, or a link, at another place.
func show(path, at string, kind fs.FileMode) error {
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
			flags = unix.MS_BIND // our own mounts are below it
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

// bindFile needs a file to mount on.
func bindFile(path, at string) error {
	f, err := os.OpenFile(at, os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), bind(path, at, unix.MS_BIND))
}

// mountTools shows the agent, and the files of the app's folder of tools at the root.
func (s appSpec) mountTools() error {
	bin := s.at(agentconfig.BinDir)
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
		if err := bindFile(filepath.Join(s.Tools, s.App.Tools, entry.Name()), s.at(entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// mountFolders shows the app its own folders where a container has them.
func (s appSpec) mountFolders() error {
	folders := map[string]string{
		agentconfig.RunDir: filepath.Join(s.State, "run"), agentconfig.LogDir: filepath.Join(s.State, "log"), "/tmp": filepath.Join(s.State, "tmp"),
		filepath.Dir(agentconfig.TokenFile): filepath.Join(s.State, "token"), filepath.Dir(agentconfig.ClockFile): s.Clock,
	}
	for at, path := range folders {
		if err := os.MkdirAll(s.at(at), 0o755); err != nil {
			return err
		}
		if err := bind(path, s.at(at), unix.MS_BIND); err != nil {
			return err
		}
	}
	return nil
}

// addFiles writes the app's files to memory and shows each at its path, which is made where the machine does not have it.
func (s appSpec) addFiles() error {
	contents := s.at("vignette", ".files")
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
	if err := os.Chown(content, 0, nonRoot); err != nil {
		return err
	}
	at := s.at(f.Path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if err := bindFile(content, at); err != nil {
		return err
	}
	return unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// enterRoot leaves the machine's own root (pivot_root(2), "pivot_root(".", ".")").
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

// dropPrivileges of the calling thread, for ever: a user without capabilities, as in a pod.
func dropPrivileges(user int) error {
	for capability := range uintptr(unix.CAP_LAST_CAP + 1) {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // an older kernel
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	if err := unix.Setgroups([]int{nonRoot}); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	if err := errors.Join(unix.Setresgid(nonRoot, nonRoot, nonRoot), unix.Setresuid(user, user, user)); err != nil {
		return fmt.Errorf("user %d: %w", user, err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	return nil
}
