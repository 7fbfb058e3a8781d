// Package proxy is one proxy of a pair on either side of a constrained link. HTTP clients use the near proxy as their HTTP proxy. It keeps each
// request on its disk and carries it to the far proxy, which calls the service. Messages arrive byte for byte.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/proxy/link"
	"vignette.dev/vignette/internal/proxy/link/amqplink"
	"vignette.dev/vignette/internal/proxy/link/coaplink"
	"vignette.dev/vignette/internal/proxy/link/httplink"
	"vignette.dev/vignette/internal/proxy/store"
	"vignette.dev/vignette/internal/proxyconfig"
	httpreq "vignette.dev/vignette/internal/traffic/http/client"
)

// protocols between the proxies.
var protocols = map[string]link.Protocol{
	proxyconfig.ProtocolHTTP: httplink.Protocol,
	proxyconfig.ProtocolCoAP: coaplink.Protocol,
	proxyconfig.ProtocolAMQP: amqplink.Protocol,
}

// grace is how long a far proxy that is stopped waits for calls under way.
const grace = 1500 * time.Millisecond

// Serve runs the proxy of a configuration file until ctx ends.
func Serve(ctx context.Context, path string) error {
	config, err := appinstance.ReadConfig[proxyconfig.Config](path)
	if err != nil {
		return err
	}
	var log *messagelog.Writer
	if config.Topic != "" {
		if log, err = messagelog.Open(); err != nil {
			return err
		}
	}
	err = Run(ctx, config, log, func(text string) { fmt.Fprintf(os.Stderr, "proxy %s: %s\n", config.Instance, text) })
	if log != nil {
		err = errors.Join(err, log.Flush())
	}
	return err
}

// Run runs a proxy until ctx ends. log may be nil; say tells people what happens.
func Run(ctx context.Context, config proxyconfig.Config, log *messagelog.Writer, say func(text string)) error {
	config = config.WithDefaults()
	p := &proxy{config: config, setup: link.Setup{Config: config, Warn: say}, metrics: newMetrics(config.Instance),
		log: &recorder{log: log, instance: config.Instance, topic: config.Topic, warn: say}}
	defer p.closing.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.metrics.Serve(ctx, config.MetricsPort, say)
	if config.Far != nil {
		if err := p.startFar(ctx); err != nil {
			return err
		}
	}
	if config.Near != nil {
		return p.runNear(ctx)
	}
	<-ctx.Done()
	return nil
}

type proxy struct {
	config  proxyconfig.Config
	setup   link.Setup
	metrics *metrics
	log     *recorder
	closing sync.WaitGroup
}

// open opens the folder of one part of the proxy, as a process may be near and far.
func (p *proxy) open(part string) (*store.Store, []store.Record, error) {
	return store.Open(filepath.Join(p.config.Folder, part), int64(p.config.Limits.DiskMiB)<<20)
}

func (p *proxy) startFar(ctx context.Context) error {
	s, records, err := p.open("far")
	if err != nil {
		return err
	}
	calls, stop := context.WithCancel(context.WithoutCancel(ctx))
	f := openFar(calls, p.config, s, records, p.metrics, p.log)
	if err := protocols[p.config.Protocol].Listen(ctx, p.setup, f.handle); err != nil {
		stop()
		s.Close()
		return err
	}
	p.closing.Go(func() {
		<-ctx.Done()
		timer := time.AfterFunc(grace, stop)
		f.wait()
		timer.Stop()
		stop()
		s.Close()
	})
	return nil
}

func (p *proxy) runNear(ctx context.Context) error {
	s, records, err := p.open("near")
	if err != nil {
		return err
	}
	defer s.Close()
	sender, err := protocols[p.config.Protocol].Dial(p.setup)
	if err != nil {
		return err
	}
	defer sender.Close()
	listener, err := (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp", p.config.Near.Listen) // clients may be behind a radio
	if err != nil {
		return fmt.Errorf("near.listen: %w", httpreq.ListenError(p.config.Near.Listen, err))
	}
	n := openNear(ctx, p.config, s, records, sender, p.metrics, p.log)
	var workers sync.WaitGroup
	for range p.config.Limits.Concurrent {
		workers.Go(n.work)
	}
	defer workers.Wait()
	defer context.AfterFunc(ctx, func() {
		listener.Close()
		n.mu.Lock()
		n.arrived.Broadcast()
		n.mu.Unlock()
	})()
	n.listen(listener)
	return nil
}

// listen serves clients until the listener closes, which it does when ctx ends. Then clients' connections are closed too.
func (n *near) listen(listener net.Listener) {
	connections := make(chan struct{}, n.config.Limits.Requests+moreConnections)
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			select {
			case connections <- struct{}{}:
			case <-n.ctx.Done():
				conn.Close()
				return
			}
			clients.Go(func() {
				defer context.AfterFunc(n.ctx, func() { conn.Close() })()
				n.serveClient(conn)
				<-connections
			})
		case n.ctx.Err() != nil:
			return
		default: // such as too many open files
			time.Sleep(10 * time.Millisecond)
		}
	}
}
