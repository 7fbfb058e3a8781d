// Command teamconsole serves the console to two teams, for tests in a browser: on a control plane of its own, or with --cluster as the chart
// has it on the developer cluster of KUBECONFIG. It prints what a test needs to know as one line of JSON, and ends with its standard input.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/internal/testteam"
)

// Told is what a test needs to know.
type Told struct {
	// Origin of the console, and Issuer of its login service.
	Origin string `json:"origin"`
	Issuer string `json:"issuer"`
	// Password of all users.
	Password string `json:"password"`
	// Skip says why there is no console.
	Skip string `json:"skip,omitempty"`
}

func main() {
	cluster := flag.Bool("cluster", false, "serve the chart's console on the developer cluster of KUBECONFIG")
	program := flag.String("console", "bin/console", "the console's program, without --cluster")
	flag.Parse()
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends, also by a signal
		cancel()
	}()
	if err := serve(ctx, *cluster, *program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, cluster bool, program string) (err error) {
	front, err := testteam.NewFront()
	if err != nil {
		return err
	}
	defer front.Close()
	world, err := start(ctx, cluster, front.Origin)
	if errors.Is(err, testteam.ErrNoFile) {
		return json.NewEncoder(os.Stdout).Encode(Told{Skip: err.Error()})
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Stop()) }()
	behind := world.ConsoleURL
	if behind == nil {
		var end func()
		if behind, end, err = run(ctx, world, program, front.Origin); err != nil {
			return err
		}
		defer end()
	}
	if err := front.Serve(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host
	}}); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(Told{Origin: front.Origin, Issuer: world.Provider.Issuer, Password: testteam.Password}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func start(ctx context.Context, cluster bool, origin string) (*testteam.World, error) {
	if testteam.Helm() == "" {
		return nil, errors.New("no helm on the PATH: hack/cluster up builds it")
	}
	if cluster {
		return testteam.StartOnCluster(ctx, os.Getenv("KUBECONFIG"), "charts", origin)
	}
	if testkube.Binary() == "" {
		return nil, errors.New(testkube.NoBinaryHint)
	}
	return testteam.Start(ctx, testkube.Binary(), "charts", origin)
}

// run the console's program on the world's API server, and return its address and what ends it.
func run(ctx context.Context, world *testteam.World, program, origin string) (address *url.URL, end func(), err error) {
	files := map[string][]byte{"server-ca": world.Kube.CAData, "issuer-ca": world.Provider.Authority.PEM(), "secret": []byte(testteam.ClientSecret)}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(world.Folder, name), text, 0o600); err != nil {
			return nil, nil, err
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	listen := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, nil, err
	}
	command := exec.CommandContext(ctx, program, "--listen", listen, "--origin", origin, "--issuer", world.Provider.Issuer, "--client-id", testteam.ClientID,
		"--issuer-ca", filepath.Join(world.Folder, "issuer-ca"), "--client-secret-file", filepath.Join(world.Folder, "secret"),
		"--api-server", world.Kube.Host, "--api-server-ca", filepath.Join(world.Folder, "server-ca"))
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return nil, nil, fmt.Errorf("%s: run make build: %w", program, err)
	}
	end = func() {
		_ = command.Process.Kill() // fails if it has ended
		_ = command.Wait()         // says that it was killed
	}
	if err := waitFor(ctx, listen); err != nil {
		end()
		return nil, nil, err
	}
	return &url.URL{Scheme: "http", Host: listen}, end, nil
}

// startTimeout of the console's program.
const startTimeout = 30 * time.Second

// waitFor a server to listen.
func waitFor(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return connection.Close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the console does not listen: %w", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
