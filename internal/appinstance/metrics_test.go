package appinstance

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAMetricsPortInUseIsToldInWords(t *testing.T) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	err = ServeMetrics(t.Context(), prometheus.NewRegistry(), port)
	if want := fmt.Sprintf("metricsPort %d: another program uses the port: want a free one", port); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

func TestServingEndsWithAnErrorUnlessItIsClosed(t *testing.T) {
	for name, want := range map[string]error{"its port fails": net.ErrClosed, "it is closed": nil} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{}
		if want == nil {
			_ = server.Close()
		} else {
			_ = listener.Close()
		}
		if err := serve(server, listener); !errors.Is(err, want) {
			t.Errorf("%s: %v; want %v", name, err, want)
		}
	}
}
