package worker

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

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
	c = &Cluster{ClusterOptions: ClusterOptions{Host: "n1", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, client: k8s, reader: k8s,
		changed: map[types.NamespacedName]string{}, written: map[string]hostStatus{}, wake: make(chan struct{}, 1)}
	m, err := NewManager(Options{StateDirectory: t.TempDir(), Log: c.Log, Changed: c.Changed})
	if err != nil {
		t.Fatal(err)
	}
	c.manager = m
	return c, writes
}

func TestTheStatusIsWrittenOnChangeOnly(t *testing.T) {
	n := networkOf("run", "vhf", "pod-1", "pod-2")
	c, writes := newTestCluster(t, n)
	set(t, c.manager, n)
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
	a := &attachment{record: record{PodUID: "pod-1", Interface: "vhf", NetworkUID: string(n.UID),
		Settings: map[string]string{"net.ipv4.tcp_congestion_control": "reno"}}}
	c.manager.attachments[a.key()] = a
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
	delete(c.manager.attachments, a.key())
	write(2, "none attached any more")
	c.written = map[string]hostStatus{} // another worker knows only what the API server has
	write(3, "another worker")
}

func TestTheStatusOfWhatIsGoneIsNotWritten(t *testing.T) {
	c, writes := newTestCluster(t)
	n := networkOf("run", "vhf", "pod-1")
	if err := c.writeStatus(t.Context(), client.ObjectKeyFromObject(n), string(n.UID)); err != nil || *writes != 0 {
		t.Errorf("%d writes, %v; want none for a network that the manager does not know", *writes, err)
	}
	set(t, c.manager, n)
	c.manager.networks[string(n.UID)].message = "something to tell"
	if err := c.writeStatus(t.Context(), client.ObjectKeyFromObject(n), string(n.UID)); err != nil {
		t.Errorf("a network that was just deleted: %v; want it to be passed over", err)
	}
}

func TestManyChangesAreWrittenAsOne(t *testing.T) {
	c, _ := newTestCluster(t)
	n := networkOf("run", "vhf", "pod-1")
	for range 10 {
		c.Changed(n)
	}
	if len(c.changed) != 1 || len(c.wake) != 1 {
		t.Errorf("%d networks to write, %d wake-ups; want one of each", len(c.changed), len(c.wake))
	}
}
