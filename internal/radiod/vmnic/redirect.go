package vmnic

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// instruction of BPF (RFC 9669).
type instruction struct {
	opcode    uint8
	registers uint8 // the destination in the low half
	offset    int16
	immediate int32
}

// loadProgram is the part of the kernel's union bpf_attr for BPF_PROG_LOAD that is needed.
type loadProgram struct {
	kind, instructionCount uint32
	instructions, license  uint64
	logLevel, logSize      uint32
	log                    uint64
	kernelVersion, flags   uint32
	name                   [16]byte
}

const (
	moveImmediate    = 0xb7 // BPF_ALU64 | BPF_MOV | BPF_K
	call             = 0x85
	exit             = 0x95
	redirectFunction = 23 // bpf_redirect(ifindex, flags); no flags is egress
)

// loadRedirect loads a program that redirects all frames to the egress of an interface.
func loadRedirect(to int) (fd int, err error) {
	program := []instruction{
		{opcode: moveImmediate, registers: 1, immediate: int32(to)}, //nolint:gosec // the kernel's indexes are of that size
		{opcode: moveImmediate, registers: 2},
		{opcode: call, immediate: redirectFunction},
		{opcode: exit},
	}
	license := []byte{0} // none: the function needs no GPL licence
	attributes := loadProgram{kind: unix.BPF_PROG_TYPE_SCHED_CLS, instructionCount: uint32(len(program)),
		instructions: uint64(uintptr(unsafe.Pointer(&program[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0])))} //nolint:gosec // the kernel's way
	copy(attributes.name[:], "vignette_wire")
	//nolint:gosec // the kernel's way
	result, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
	runtime.KeepAlive(program)
	runtime.KeepAlive(license)
	if errno != 0 {
		return -1, fmt.Errorf("load a BPF program that redirects (kernel option CONFIG_BPF_SYSCALL): %w", errno)
	}
	return int(result), nil
}
