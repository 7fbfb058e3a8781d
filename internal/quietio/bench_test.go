package quietio_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/quietio"
)

const benchEnv = "QUIETIO_BENCH_ADDRESS"

// BenchmarkMessage is the processor time of a whole process that reads and logs ten messages a second, its start included.
func BenchmarkMessage(b *testing.B) {
	for _, kind := range []string{"quiet", "plain"} {
		b.Run(kind, func(b *testing.B) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			child := exec.Command(os.Args[0], "-test.run=^$")
			child.Env = append(os.Environ(), benchEnv+"="+listener.Addr().String(), "QUIETIO_BENCH_KIND="+kind)
			if err := child.Start(); err != nil {
				b.Fatal(err)
			}
			to, err := listener.Accept()
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				fmt.Fprintf(to, "%0220d\n", 0)
				time.Sleep(100 * time.Millisecond)
			}
			to.Close()
			if err := child.Wait(); err != nil {
				b.Fatal(err)
			}
			used := child.ProcessState.SystemTime() + child.ProcessState.UserTime()
			b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

func init() {
	address := os.Getenv(benchEnv)
	if address == "" {
		return
	}
	runtime.GOMAXPROCS(1) // as in the traffic generator
	connection, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	file, err := os.CreateTemp("", "quietio")
	if err != nil {
		panic(err)
	}
	_ = os.Remove(file.Name())
	log := io.Writer(file)
	if os.Getenv("QUIETIO_BENCH_KIND") == "quiet" {
		connection, log = quietio.NewConn(connection), quietio.NewFile(file)
	}
	lines := bufio.NewScanner(connection)
	for lines.Scan() {
		if _, err := log.Write(append(lines.Bytes(), '\n')); err != nil {
			panic(err)
		}
	}
	syscall.Exit(0)
}
