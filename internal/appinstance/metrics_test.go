package appinstance

import (
	"errors"
	"net"
	"net/http"
	"testing"
)

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
