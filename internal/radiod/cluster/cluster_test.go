package cluster

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// radios have the status of each network.
type radios map[string]Status

func (r radios) SetNetwork(*v1alpha1.RadioNetwork) error { return nil }
func (r radios) RemoveNetwork(string) error              { return nil }
func (r radios) RemoveFormerMembers() error              { return nil }
func (r radios) Prune(map[string]bool) error             { return nil }
func (r radios) SetAllowed(podnet.Allowed) error         { return nil }

func (r radios) HostStatus(uid string) (status Status, known bool) {
	status, known = r[uid]
	return status, known
}

// vhf is a network of two nodes.
func vhf() *v1alpha1.RadioNetwork {
	return &v1alpha1.RadioNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "run-vhf", UID: "runvhf"},
		Spec: v1alpha1.RadioNetworkSpec{Network: "vhf", MTU: 1400, Members: []v1alpha1.Member{{Node: "node-1"}, {Node: "node-2"}}}}
}

// newTestCluster is a Cluster before an API server that counts the writes.
func newTestCluster(t *testing.T, objects ...client.Object) (c *Cluster, writes *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	writes = new(int)
	count := interceptor.Funcs{SubResourcePatch: func(ctx context.Context, k8s client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
		*writes++
		return k8s.SubResource(sub).Patch(ctx, object, patch, options...)
	}}
	k8s := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.RadioNetwork{}).WithInterceptorFuncs(count).Build()
	c = &Cluster{Options: Options{Host: "n1", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, client: k8s, reader: k8s,
		changed: map[types.NamespacedName]string{}, written: map[string]Status{}, wake: make(chan struct{}, 1)}
	c.radios = radios{}
	return c, writes
}

func TestTheStatusIsWrittenOnChangeOnly(t *testing.T) {
	n := vhf()
	c, writes := newTestCluster(t, n)
	here := radios{string(n.UID): {}}
	c.radios = here
	name := client.ObjectKeyFromObject(n)
	write := func(want int, why string) {
		t.Helper()
		for range 2 {
			if err := c.writeStatus(t.Context(), name, string(n.UID)); err != nil {
				t.Fatal(err)
			}
		}
		if *writes != want {
			t.Errorf("%s: %d writes; want %d", why, *writes, want)
		}
	}
	write(0, "nothing attached, nothing written before")
	here[string(n.UID)] = Status{Attached: 1, CongestionControl: "reno"}
	write(1, "one attached")
	var got v1alpha1.RadioNetwork
	if err := c.client.Get(t.Context(), name, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Status.Hosts) != 1 || !reflect.DeepEqual(got.Status.Hosts[0], v1alpha1.RadioNetworkHost{Host: "n1", Attached: 1, TCPCongestionControl: "reno"}) {
		t.Errorf("status %+v; want one attached on n1", got.Status)
	}
	if len(got.Spec.Members) != 2 {
		t.Errorf("the spec was touched: %+v", got.Spec)
	}
	here[string(n.UID)] = Status{}
	write(2, "none attached any more")
	c.written = map[string]Status{} // another worker knows only what the API server has
	write(3, "another worker")
}

func TestTheStatusOfWhatIsGoneIsNotWritten(t *testing.T) {
	c, writes := newTestCluster(t)
	n := vhf()
	if err := c.writeStatus(t.Context(), client.ObjectKeyFromObject(n), string(n.UID)); err != nil || *writes != 0 {
		t.Errorf("%d writes, %v; want none for a network that the manager does not know", *writes, err)
	}
	c.radios = radios{string(n.UID): {Message: "something to tell"}}
	if err := c.writeStatus(t.Context(), client.ObjectKeyFromObject(n), string(n.UID)); err != nil {
		t.Errorf("a network that was just deleted: %v; want it to be passed over", err)
	}
}

func TestARefusalIsInTheEntryOfTheHost(t *testing.T) {
	if entry := hostEntry("n1", "", Status{Refused: "mac"}); entry["refused"] != "mac" || entry["message"] != nil {
		t.Errorf("the entry in the status is %v", entry)
	}
}

// removals are radios that note which networks are removed.
type removals struct {
	radios
	uids []string
}

func (r *removals) RemoveNetwork(uid string) error {
	r.uids = append(r.uids, uid)
	return nil
}

// An informer that was cut off reports a deleted object and another one of its name as an update.
func TestANetworkThatHasTheNameOfADeletedOneReplacesIt(t *testing.T) {
	c, _ := newTestCluster(t)
	r := &removals{}
	c.radios = r
	before, after := vhf(), vhf()
	c.update(before, after)
	if len(r.uids) > 0 {
		t.Errorf("removed %v; want nothing, as it is the same", r.uids)
	}
	after.UID = "another"
	c.update(before, after)
	if len(r.uids) != 1 || r.uids[0] != string(before.UID) {
		t.Errorf("removed %v; want %s", r.uids, before.UID)
	}
}

func TestManyChangesAreWrittenAsOne(t *testing.T) {
	c, _ := newTestCluster(t)
	n := vhf()
	for range 10 {
		c.Changed(n)
	}
	if len(c.changed) != 1 || len(c.wake) != 1 {
		t.Errorf("%d networks to write, %d wake-ups; want one of each", len(c.changed), len(c.wake))
	}
}
