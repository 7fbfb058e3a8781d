package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

const playedUID = "9d1b2c3a"

// kubeVirt plays KubeVirt's API for one machine, bft-live-veh-1.
type kubeVirt struct {
	// phases that the machine goes through, one for each question; the last one stays. Without any there is no machine.
	phases []string
	asked  atomic.Int32
	// absent: the cluster has no KubeVirt.
	absent bool
	// refusal answers streams instead of guest: the first ones if closed counts them, else all.
	refusal *apierrors.StatusError
	closed  atomic.Int32
	// owner is the UID of the machine's experiment; empty for the live cluster.
	owner types.UID
	// guest is what answers a stream, such as a console.
	guest func(*websocket.Conn)
	// path of the last stream that was opened.
	path atomic.Value
}

const machinePath = "/namespaces/team-nor/virtualmachineinstances/bft-live-veh-1"

func (k *kubeVirt) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	subresource, isStream := strings.CutPrefix(r.URL.Path, streamsPath+machinePath+"/")
	switch {
	case k.absent:
		http.NotFound(w, r)
	case isStream && k.refusal != nil && k.closed.Add(-1) != 0:
		refuse(w, k.refusal)
	case isStream:
		k.path.Store(subresource)
		upgrader := websocket.Upgrader{Subprotocols: []string{streamProtocol}}
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return // the client hears of it
		}
		defer connection.Close()
		k.guest(connection)
	case r.URL.Path == machinesPath+machinePath && len(k.phases) > 0:
		phase := k.phases[min(int(k.asked.Add(1)), len(k.phases))-1]
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"metadata":{"name":"bft-live-veh-1","uid":%q,"ownerReferences":[{"controller":true,"uid":%q}]},"status":{"phase":%q}}`,
			playedUID, cmp.Or(k.owner, liveCluster().UID), phase)
	default:
		refuse(w, apierrors.NewNotFound(schema.GroupResource{Group: "kubevirt.io", Resource: machineResource}, "bft-live-veh-1"))
	}
}

func refuse(w http.ResponseWriter, e *apierrors.StatusError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(e.ErrStatus.Code))
	status := e.ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	_ = json.NewEncoder(w).Encode(status) // a client that is gone needs no answer
}

// withMachines is a live cluster whose vehicles are virtual machines.
func withMachines() *v1alpha1.Experiment {
	e := liveCluster()
	e.Spec.Nodes[1].Runtime = v1alpha1.RuntimeVM
	return e
}

func (k *kubeVirt) cluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	c := newPlatform().cluster(t, objects...)
	c.config = &rest.Config{Host: server.URL}
	return c
}

// echo is a guest that greets and says everything twice: what is typed, and what becomes of it.
func echo(connection *websocket.Conn) {
	_ = connection.WriteMessage(websocket.BinaryMessage, []byte("login: "))
	for {
		kind, text, err := connection.ReadMessage()
		if err != nil {
			return
		}
		_ = connection.WriteMessage(kind, []byte("["+string(text)+"]"))
	}
}

func TestTheConsoleIsPassedOnBothWaysUntilTheEscape(t *testing.T) {
	k := &kubeVirt{phases: []string{"Running"}, guest: echo}
	in, keys := io.Pipe()
	out, notes := newArriving(), newArriving()
	ended := make(chan error, 1)
	c := k.cluster(t, withMachines())
	go func() { ended <- c.console(context.Background(), "", "veh-1", streams{in, out, notes}) }()
	notes.waitFor(t, "Ctrl-] leaves it")
	out.waitFor(t, "login: ")
	for _, typed := range []string{"root\n", "uname\x1dnever sent"} {
		if _, err := io.WriteString(keys, typed); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(typed, "\x1d") {
			out.waitFor(t, "[root\n]")
		}
	}
	if err := <-ended; err != nil || strings.Contains(out.String(), "never") {
		t.Errorf("error %v, output %q; want it to end at Ctrl-], with nothing sent after it", err, out.String())
	}
	if got := k.path.Load(); got != "console" {
		t.Errorf("stream %v was opened; want console", got)
	}
}

func TestAConsoleThatTheOtherSideClosesSaysWhy(t *testing.T) {
	for name, farewell := range map[string]func(*websocket.Conn){
		"without a word": func(*websocket.Conn) {},
		"with a farewell": func(c *websocket.Conn) {
			_ = c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kubeVirt{phases: []string{"Running"}, guest: farewell}
			in, _ := io.Pipe()
			err := k.cluster(t, withMachines()).console(t.Context(), "", "veh-1", streams{in, io.Discard, io.Discard})
			if err == nil || !strings.Contains(err.Error(), "its machine has ended, or somebody else opened its console") {
				t.Errorf("error %v; want what may have happened", err)
			}
		})
	}
}

func TestTheEndOfTheInputEndsNoConsole(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := newArriving()
	ended := make(chan error, 1)
	c := (&kubeVirt{phases: []string{"Running"}, guest: echo}).cluster(t, withMachines())
	go func() { ended <- c.console(ctx, "", "veh-1", streams{strings.NewReader("ls\n"), out, io.Discard}) }()
	out.waitFor(t, "[ls\n]")
	cancel()
	if err := <-ended; err != exit(exitDetached) {
		t.Errorf("error %v; want exit code %d and no word", err, exitDetached)
	}
}

func TestAConsoleIsWaitedForWhileTheMachineStarts(t *testing.T) {
	k := &kubeVirt{phases: []string{"Pending", "Scheduled", "Running"}, guest: func(*websocket.Conn) {}}
	var notes bytes.Buffer
	in, _ := io.Pipe()
	starting := withMachines()
	starting.Status.Phase = v1alpha1.PhaseProvisioning
	_ = k.cluster(t, starting).console(t.Context(), "", "veh-1", streams{in, io.Discard, &notes})
	if got := notes.String(); strings.Count(got, "waiting") != 1 || !strings.Contains(got, "Console of node veh-1") {
		t.Errorf("notes %q; want that it waits, once, and then the console", got)
	}
}

func TestErrorsOfConsoleAndSSHSayWhatToDo(t *testing.T) {
	gone, refusing := &kubeVirt{}, func(e *apierrors.StatusError) *kubeVirt { return &kubeVirt{phases: []string{"Running"}, refusal: e} }
	over := withMachines()
	over.Status.Phase = v1alpha1.PhaseSucceeded
	streams403 := schema.GroupResource{Group: "subresources.kubevirt.io", Resource: machineResource}
	for name, c := range map[string]struct {
		kubeVirt   *kubeVirt
		experiment *v1alpha1.Experiment
		node, want string
	}{
		"a pod": {gone, withMachines(), "hq", "node hq of experiment bft-live is a pod, which has no serial console: " +
			"vignette shell -n team-nor -e bft-live hq, or name a virtual machine: veh-1, veh-2, veh-3"},
		"no machine at all":     {gone, liveCluster(), "hq", "the experiment has no node with runtime: vm"},
		"no such node":          {gone, withMachines(), "veh-9", "there is no node veh-9 in experiment bft-live: want one of hq, veh-1"},
		"no KubeVirt":           {&kubeVirt{absent: true}, withMachines(), "veh-1", "the cluster has no KubeVirt, which runs virtual machines: see docs/how-to/use-virtual-machines.md"},
		"gone":                  {gone, withMachines(), "veh-1", "the virtual machine of node veh-1 is gone: vignette status -n team-nor bft-live shows why"},
		"another's of its name": {&kubeVirt{phases: []string{"Running"}, owner: "other"}, withMachines(), "veh-1", "the virtual machine of node veh-1 is gone"},
		"failed": {&kubeVirt{phases: []string{"Failed"}}, withMachines(), "veh-1",
			"does not run, it is Failed: vignette status -n team-nor bft-live shows why; its logs: vignette logs"},
		"ended": {gone, over, "veh-1", "has ended, it succeeded"},
		"no right": {refusing(apierrors.NewForbidden(streams403, "bft-live-veh-1", errors.New("anna may not"))), withMachines(), "veh-1",
			"it takes the role vignette-experimenter in the namespace"},
		"KubeVirt's API down": {refusing(apierrors.NewServiceUnavailable("no endpoints")), withMachines(), "veh-1",
			"kubectl get apiservice v1.subresources.kubevirt.io"},
		"no such port in guest": {refusing(apierrors.NewInternalError(errors.New("dialing VM: connection refused"))), withMachines(), "veh-1",
			"see whether its image runs an SSH server: vignette console -n team-nor -e bft-live veh-1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.kubeVirt.cluster(t, c.experiment).console(t.Context(), "bft-live", c.node, streams{strings.NewReader(""), io.Discard, io.Discard})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v; want %s", err, c.want)
			}
		})
	}
}

func TestAShellOnAMachineNamesWhatThereIsInstead(t *testing.T) {
	err := (&kubeVirt{}).cluster(t, withMachines()).shell(t.Context(), shellPlace{node: "veh-1"}, nil, streams{strings.NewReader(""), io.Discard, io.Discard})
	if err == nil || !strings.Contains(err.Error(), "is a virtual machine, whose apps have no containers: vignette ssh -n team-nor -e bft-live veh-1, or vignette console") {
		t.Errorf("error %v; want ssh and console named", err)
	}
}

func TestCompletionOffersMachinesForOnePodsForTheOther(t *testing.T) {
	s, err := expand(withMachines())
	if err != nil {
		t.Fatal(err)
	}
	if machines, pods := s.machineNames(), s.podNames(); !slices.Equal(machines, []string{"veh-1", "veh-2", "veh-3"}) || !slices.Equal(pods, []string{"hq"}) {
		t.Errorf("machines %v, pods %v", machines, pods)
	}
}

func TestTheWayForSSHIsTheBytesOfThePort(t *testing.T) {
	sent := bytes.Repeat([]byte("SSH-2.0-\x00\x1d\xff"), 20_000) // the escape of a console means nothing here
	k := &kubeVirt{phases: []string{"Running"}, guest: func(connection *websocket.Conn) {
		var got []byte
		for len(got) < len(sent) {
			_, part, err := connection.ReadMessage()
			if err != nil {
				return
			}
			got = append(got, part...)
		}
		for part := range slices.Chunk(got, 7001) {
			_ = connection.WriteMessage(websocket.BinaryMessage, part)
		}
		_ = connection.WriteMessage(websocket.BinaryMessage, nil)
	}}
	var out bytes.Buffer
	never, _ := io.Pipe()
	in := io.MultiReader(iotest.HalfReader(bytes.NewReader(sent)), never)
	err := k.cluster(t, withMachines()).sshStdio(t.Context(), "veh-1", sshOptions{port: 2222}, streams{in, &out, io.Discard})
	if err != nil || !bytes.Equal(out.Bytes(), sent) {
		t.Errorf("error %v, %d bytes came back; want the %d that were sent, unchanged", err, out.Len(), len(sent))
	}
	if got := k.path.Load(); got != "portforward/2222/tcp" {
		t.Errorf("stream %v was opened; want portforward/2222/tcp", got)
	}
}

func TestAGuestThatBootsIsWaitedForUntilItsSSHServerListens(t *testing.T) {
	k := &kubeVirt{phases: []string{"Running"}, refusal: apierrors.NewInternalError(errors.New("dialing VM: connection refused")),
		guest: func(connection *websocket.Conn) {
			_ = connection.WriteMessage(websocket.BinaryMessage, []byte("SSH-2.0"))
		}}
	k.closed.Store(3) // two attempts fail
	var out, notes bytes.Buffer
	never, _ := io.Pipe()
	if err := k.cluster(t, withMachines()).sshStdio(t.Context(), "veh-1", sshOptions{port: 22}, streams{never, &out, &notes}); err != nil || out.String() != "SSH-2.0" {
		t.Errorf("error %v, %q came; want the server's greeting", err, out.String())
	}
	if got := notes.String(); strings.Count(got, "Port 22 of node veh-1 is closed yet") != 1 {
		t.Errorf("notes %q; want that it waits, once", got)
	}
}

// playSSH puts a program ssh on the PATH that writes its arguments, one a line, and ends as it is told.
func playSSH(t *testing.T, code int) {
	t.Helper()
	folder := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$@\"\nexit %d\n", code)
	if err := os.WriteFile(filepath.Join(folder, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", folder)
}

func TestSSHRunsTheUsersOwnThroughTheCluster(t *testing.T) {
	playSSH(t, 3)
	k := &kubeVirt{phases: []string{"Running"}}
	var out bytes.Buffer
	o := sshOptions{user: "debian", identity: "/home/anna/key", port: 22}
	err := k.cluster(t, withMachines()).ssh(t.Context(), "veh-1", []string{"ip", "link"}, o, &target{context: "lab 50%"}, streams{strings.NewReader(""), &out, io.Discard})
	if err != exit(3) {
		t.Errorf("error %v; want the command's exit code", err)
	}
	for _, want := range []string{
		`'ssh' '--stdio' '--port' '22' '-n' 'team-nor' '-e' 'bft-live' '--context' 'lab 50%%' 'veh-1'` + "\n",
		"HostKeyAlias=" + playedUID + "\n", "StrictHostKeyChecking=accept-new\n", "/vignette/known_hosts\"\n", "-l\ndebian\n-i\n/home/anna/key\nveh-1\nip\nlink\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("arguments of ssh:\n%s\nwant %q", out.String(), want)
		}
	}
}

func TestWhoCannotLogInIsToldWhoseKeysTheNodeHas(t *testing.T) {
	playSSH(t, 255)
	var notes bytes.Buffer
	err := (&kubeVirt{phases: []string{"Running"}}).cluster(t, withMachines()).ssh(t.Context(), "veh-1", nil, sshOptions{user: "root", port: 22}, &target{}, streams{strings.NewReader(""), io.Discard, &notes})
	if err != exit(255) || !strings.Contains(notes.String(), "Node veh-1 has no vm.sshKeys") {
		t.Errorf("error %v, notes %q; want it said that the node has no keys", err, notes.String())
	}
}

func TestWithoutAnSSHOfOnesOwnTheErrorNamesThePackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := (&kubeVirt{phases: []string{"Running"}}).cluster(t, withMachines()).ssh(t.Context(), "veh-1", nil, sshOptions{}, &target{}, streams{nil, io.Discard, io.Discard})
	if err == nil || !strings.Contains(err.Error(), "openssh-client") {
		t.Errorf("error %v; want what to install", err)
	}
}
