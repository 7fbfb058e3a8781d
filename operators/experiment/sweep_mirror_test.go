package experiment

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/internal/testkube"
)

// revision is one state of one object. The object is nil if it is deleted.
type revision struct {
	kind   string
	key    client.ObjectKey
	object client.Object
}

// mirror holds the API server's answers to each write of a world, in order. The world reads all of them, while the
// operator's caches show each kind as late as the test wants.
type mirror struct {
	server client.WithWatch
	mu     sync.Mutex
	past   []revision
	// shown is how many revisions the operator's caches show, for kinds that lag. Others show all revisions from before the
	// reconciliation.
	shown map[string]int
	// begun is the number of revisions at the start of the reconciliation.
	begun int
	// changed is called for every revision.
	changed func(before, after revision)
}

func newMirror(server client.WithWatch) *mirror {
	return &mirror{server: server, shown: map[string]int{}, changed: func(revision, revision) {}}
}

var sweepScheme = testkube.Scheme()

func kindOf(object runtime.Object) string {
	gvk, err := apiutil.GVKForObject(object, sweepScheme)
	if err != nil {
		panic(err) // an object that no scheme knows: a mistake in the test
	}
	return strings.TrimSuffix(gvk.Kind, "List")
}

// take adds the state of an object.
func (m *mirror) take(object client.Object) {
	m.add(revision{kindOf(object), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object)})
}

func (m *mirror) add(after revision) {
	m.mu.Lock()
	before := m.state(after.kind, len(m.past))[after.key]
	m.past = append(m.past, after)
	m.mu.Unlock()
	m.changed(revision{after.kind, after.key, before}, after)
}

// refresh adds an object's state on the API server.
func (m *mirror) refresh(ctx context.Context, object client.Object) error {
	now := object.DeepCopyObject().(client.Object)
	err := m.server.Get(ctx, client.ObjectKeyFromObject(object), now)
	if apierrors.IsNotFound(err) {
		m.add(revision{kindOf(object), client.ObjectKeyFromObject(object), nil})
		return nil
	}
	if err == nil {
		m.take(now)
	}
	return err
}

// state is that of all objects of a kind after so many revisions.
func (m *mirror) state(kind string, upTo int) map[client.ObjectKey]client.Object {
	found := map[client.ObjectKey]client.Object{}
	for _, r := range m.past[:upTo] {
		switch {
		case r.kind != kind:
		case r.object == nil:
			delete(found, r.key)
		default:
			found[r.key] = r.object
		}
	}
	return found
}

func (m *mirror) now(kind string) map[client.ObjectKey]client.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state(kind, len(m.past))
}

// cached are the objects of a kind in the operator's caches.
func (m *mirror) cached(kind string) map[client.ObjectKey]client.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	upTo, lags := m.shown[kind]
	if !lags {
		upTo = m.begun
	}
	return m.state(kind, upTo)
}

// begin starts a reconciliation. Its own writes appear in the caches only in the next.
func (m *mirror) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun = len(m.past)
}

// freeze sets the caches of kinds to their state after so many revisions.
func (m *mirror) freeze(upTo int, kinds ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, kind := range kinds {
		m.shown[kind] = max(min(upTo, len(m.past)), 0)
	}
}

func (m *mirror) thaw() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.shown)
}

func (m *mirror) length() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.past)
}

type reader func(kind string) map[client.ObjectKey]client.Object

func (read reader) get(key client.ObjectKey, into client.Object) error {
	kind := kindOf(into)
	object := read(kind)[key]
	if object == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	return assign(into, object)
}

// assign copies an object into one of its type, or into an unstructured one.
func assign(into, object client.Object) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		if from, same := object.(*unstructured.Unstructured); same {
			from.DeepCopyInto(u)
			return nil
		}
		gvk := u.GroupVersionKind()
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		u.Object = content
		u.SetGroupVersionKind(gvk)
		return err
	}
	if reflect.TypeOf(into) != reflect.TypeOf(object) {
		return fmt.Errorf("%T asked for, %T held", into, object)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
	return nil
}

func (read reader) list(into client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	objects := read(kindOf(into))
	keys := slices.SortedFunc(maps.Keys(objects), func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	_, loose := into.(*unstructured.UnstructuredList)
	items := []runtime.Object{}
	for _, key := range keys {
		object := objects[key]
		if asked.Namespace != "" && asked.Namespace != key.Namespace || asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		item := object.DeepCopyObject().(client.Object)
		if loose {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(into.GetObjectKind().GroupVersionKind().GroupVersion().WithKind(kindOf(into)))
			if err := assign(u, object); err != nil {
				return err
			}
			item = u
		}
		items = append(items, item)
	}
	return meta.SetList(into, items)
}

// world is the client of the world, whose reads are never stale.
func (m *mirror) world() client.WithWatch { return m.over(m.now) }

// caches is the client of the operator, which reads from the caches.
func (m *mirror) caches() client.WithWatch { return m.over(m.cached) }

func (m *mirror) over(read reader) client.WithWatch {
	return interceptor.NewClient(m.server, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			return read.get(key, o)
		},
		List: func(_ context.Context, _ client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			return read.list(l, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return m.wrote(ctx, o, c.Create(ctx, o, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return m.wrote(ctx, o, c.Update(ctx, o, options...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			return m.wrote(ctx, o, c.Patch(ctx, o, p, options...))
		},
		Delete: m.delete,
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			return m.wrote(ctx, o, c.SubResource(sub).Patch(ctx, o, p, options...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			return m.wrote(ctx, o, c.SubResource(sub).Update(ctx, o, options...))
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, what client.Object, options ...client.SubResourceCreateOption) error {
			if err := c.SubResource(sub).Create(ctx, o, what, options...); err != nil {
				return err
			}
			return m.refresh(ctx, o)
		},
	})
}

// wrote adds the answer to a write. The removal of the last finalizer may have deleted the object.
func (m *mirror) wrote(ctx context.Context, object client.Object, err error) error {
	switch {
	case err != nil:
		return err
	case !object.GetDeletionTimestamp().IsZero() && len(object.GetFinalizers()) == 0:
		return m.refresh(ctx, object)
	}
	m.take(object)
	return nil
}

func (m *mirror) delete(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
	if err := c.Delete(ctx, object, options...); err != nil {
		return err
	}
	return m.refresh(ctx, object)
}
