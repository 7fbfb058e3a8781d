package appinstance

import (
	"syscall"
	"testing"
	"time"
)

func TestAProcessThatIsQuietFromItsStartSendsNothing(t *testing.T) {
	t.Setenv(EnvQuiet, QuietFromStart)
	sending, stop := UntilQuiet(t.Context(), QuietOn(syscall.SIGUSR2))
	defer stop()
	if sending.Err() == nil {
		t.Error("it may send")
	}
}

func TestASignalMakesAProcessQuiet(t *testing.T) {
	sending, stop := UntilQuiet(t.Context(), QuietOn(syscall.SIGUSR2))
	defer stop()
	if sending.Err() != nil {
		t.Fatal("it may not send before the signal")
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	select {
	case <-sending.Done():
	case <-time.After(10 * time.Second):
		t.Error("it may still send")
	}
}
