package client

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
)

func TestASubscriptionThatIsRefusedIsToldAndTriedAgain(t *testing.T) {
	broker := address(t)
	startBroker(t, broker, wsn.BrokerConfig{})
	var refused atomic.Bool
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: broker})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(wire.ActionSubscribe)) && refused.CompareAndSwap(false, true) {
			http.Error(w, "", http.StatusForbidden)
			return
		}
		r.Host, r.Body = broker, io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	_, l := startClient(t, subscriber(strings.TrimPrefix(front.URL, "http://"), "/PRT/#"))
	if told := l.told(); !slices.Equal(told, []string{"/PRT/# status 403 Forbidden", "/PRT/# made"}) {
		t.Errorf("told %q; want the refusal, and that it is made then", told)
	}
}
