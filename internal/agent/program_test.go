package agent

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// executable writes a file that everybody may execute.
func executable(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// elfProgram is no more than what says of a 64-bit program for whom it is built and what loads it.
func elfProgram(t *testing.T, machine elf.Machine, loader string) string {
	t.Helper()
	var b bytes.Buffer
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	segment := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: 120, Filesz: uint64(len(loader) + 1), Memsz: uint64(len(loader) + 1)}
	for _, part := range []any{header, segment, append([]byte(loader), 0)} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return executable(t, b.String())
}

func TestWhyAProgramCannotStartIsExplained(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	here := machines[runtime.GOARCH]
	for name, c := range map[string]struct{ command, want string }{
		"a program in PATH":            {"sh", ""},
		"a script":                     {executable(t, "#!/bin/sh\n"), ""},
		"a script with a tab":          {executable(t, "#!/bin/sh\t-e\n"), ""},
		"a script of Windows":          {executable(t, "#!/bin/sh\r\n"), "want a line feed alone"},
		"no such program":              {"no-such-program", "the app's image has no such program"},
		"no such file":                 {"/no/such/program", "the app's image has no such program"},
		"not executable":               {plain, "is not executable for user id"},
		"a script without interpreter": {executable(t, "#!/no/such/python -u\n"), "needs /no/such/python, which the app's image does not have"},
		"a program of another libc":    {elfProgram(t, here, "/lib/no-such-ld.so.1"), "needs /lib/no-such-ld.so.1, which the app's image does not have"},
		"a program that could run":     {elfProgram(t, here, "/proc/self/exe"), ""},
		"one for an emulator":          {elfProgram(t, elf.EM_68K, "/lib/no-such-ld.so.1"), ""},
	} {
		err := checkProgram(c.command, "the app's image")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

func TestAProgramForAnotherArchitectureIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	err := explainStart(elfProgram(t, elf.EM_68K, "/x"), syscall.ENOEXEC)
	if want := "it is built for EM_68K, and this host's architecture is " + runtime.GOARCH; !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want %q in it", err, want)
	}
}

func FuzzProgram(f *testing.F) {
	f.Add([]byte("#!/bin/sh -e\n"))
	f.Add([]byte("\x7fELF\x02\x01\x01\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := executable(t, string(content))
		if loader := loaderOf(path); len(loader) > 4096 {
			t.Errorf("the loader has %d bytes", len(loader))
		}
		if explainStart(path, syscall.ENOEXEC) == nil {
			t.Error("an error was explained away")
		}
	})
}
