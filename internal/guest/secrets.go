package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/guestconfig"
)

// missingKey means that a Secret does not have a key that an app needs. Its text is like the operator's for a pod.
type missingKey struct {
	variable string
	guestconfig.SecretKey
}

func (m missingKey) Error() string {
	return fmt.Sprintf("takes variable %s from key %s of Secret %s, which has no such key: create it, then create the experiment again", m.variable, m.Key, m.Secret)
}

// withSecrets returns an app with its variables and files from Secrets. Each Secret's disk is mounted only while it is read, where only
// root may see it; the values go to the app's own process.
func (g *guest) withSecrets(app guestconfig.App) (guestconfig.App, error) {
	disks := map[string]bool{}
	for _, key := range app.SecretEnv {
		disks[key.Disk] = true
	}
	for _, file := range app.SecretFiles {
		disks[file.Disk] = true
	}
	app.Env, app.Files = maps.Clone(app.Env), slices.Clone(app.Files)
	if app.Env == nil {
		app.Env = map[string]string{}
	}
	for _, disk := range slices.Sorted(maps.Keys(disks)) {
		if err := g.readSecrets(&app, disk); err != nil {
			return app, err
		}
	}
	return app, nil
}

func (g *guest) readSecrets(app *guestconfig.App, disk string) (err error) {
	folder, done, err := g.openDisk(disk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	for _, name := range slices.Sorted(maps.Keys(app.SecretEnv)) {
		key := app.SecretEnv[name]
		if key.Disk != disk {
			continue
		}
		value, err := readKey(folder, key.Key)
		if errors.Is(err, fs.ErrNotExist) {
			return missingKey{name, key}
		}
		if err != nil {
			return fmt.Errorf("variable %s from key %s of Secret %s: %w", name, key.Key, key.Secret, err)
		}
		if !guestconfig.ValidVariable(name, string(value)) {
			return fmt.Errorf("variable %s from key %s of Secret %s has %d bytes that no variable can have: want %s", name, key.Key, key.Secret, len(value), guestconfig.WantVariable)
		}
		app.Env[name] = string(value)
	}
	for _, file := range app.SecretFiles {
		if file.Disk != disk {
			continue
		}
		content, err := readKey(folder, file.Key)
		if err != nil {
			return fmt.Errorf("file %s from key %s of a Secret: %w", file.Path, file.Key, err)
		}
		app.Files = append(app.Files, guestconfig.File{Path: file.Path, Content: content, Secret: true})
	}
	return nil
}

// readKey of a Secret. Other entries of the disk, such as the kubelet's folders, are no keys.
func readKey(folder, key string) ([]byte, error) {
	path := filepath.Join(folder, key)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	return os.ReadFile(path)
}

// mountSecret mounts the disk of a Secret until done.
func (g *guest) mountSecret(label string) (folder string, done func() error, err error) {
	folder, err = folderOrDisk("", label, filepath.Join(g.runDir, "secrets", label))
	return folder, func() error { return unix.Unmount(folder, 0) }, err
}
