package agent

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// checkProgram returns why a program cannot be started in this container or machine, whose files are those of place.
func checkProgram(name, place string) error {
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("command %s is not executable for user id %d", name, os.Getuid())
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("command %s does not exist: %s has no such program", name, place)
	case err != nil:
		return fmt.Errorf("command %s: %w", name, err)
	}
	loader := loaderOf(path)
	if strings.HasSuffix(loader, "\r") {
		return fmt.Errorf("command %s is a script whose lines end as in Windows, with which its interpreter is not found: want a line feed alone", name)
	}
	if _, err := os.Stat(loader); loader != "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("command %s needs %s, which %s does not have", name, loader, place)
	}
	return nil
}

// loaderOf returns the program that the kernel starts for another one: a script's interpreter, or the dynamic linker, which
// belongs to a C library that the image may lack. Empty for none.
func loaderOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "" // a program may be executable without being readable
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	if script := interpreter(string(head[:n])); script != "" {
		return script
	}
	program, err := elf.NewFile(f)
	if err != nil || program.Machine != machines[runtime.GOARCH] {
		return ""
	}
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_INTERP || segment.Filesz > 4096 {
			continue
		}
		text := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(text, 0); err == nil {
			return strings.TrimRight(string(text), "\x00")
		}
	}
	return ""
}

// machines by Go's names of architectures.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "386": elf.EM_386, "arm": elf.EM_ARM,
	"riscv64": elf.EM_RISCV, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390,
}

// explainStart explains the kernel's error. The architecture is checked only now, as an emulator in the kernel may run
// other programs.
func explainStart(path string, err error) error {
	if !errors.Is(err, syscall.ENOEXEC) {
		return err
	}
	program, openErr := elf.Open(path)
	if openErr != nil {
		return fmt.Errorf("%w: it is neither a program nor a script with #! at its beginning", err)
	}
	defer program.Close()
	return fmt.Errorf("%w: it is built for %s, and this host's architecture is %s: give an image for that", err, program.Machine, runtime.GOARCH)
}
