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
	"time"

	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
	"vignette.dev/vignette/internal/trafficconfig"
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

func TestABacklogDoesNotKeepASubscriptionFromBeingRenewed(t *testing.T) {
	broker := address(t)
	startBroker(t, broker, wsn.BrokerConfig{})
	var renewed atomic.Bool
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: broker})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(wire.ActionNotify)) {
			time.Sleep(20 * time.Millisecond) // a round trip
		}
		if bytes.Contains(body, []byte(wire.ActionRenew)) {
			renewed.Store(true)
		}
		r.Host, r.Body = broker, io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	config := subscriber(strings.TrimPrefix(front.URL, "http://"), "/NOR/#")
	config.Publish = &trafficconfig.Publish{QoS: 1}
	c, _ := startClient(t, config)
	for range 200 {
		publish(t, c, "/PRT/x", "text")
	}
	eventually(t, "renewal", renewed.Load)
	if _, more := c.first(); !more {
		t.Error("the subscription is renewed after the backlog; want it during the backlog")
	}
}
