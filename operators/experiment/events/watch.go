package events

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// watch of one namespace's events. As a cache.ReflectorStore it passes them on and stores nothing.
type watch struct {
	collector *Collector
	stop      context.CancelFunc

	// failing is the error of lists and watches. The collector's lock protects it.
	failing error
	since   time.Time
}

// updateWatches starts and stops watches of the runs' namespaces and of the platform's.
func (c *Collector) updateWatches(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := map[string]bool{}
	for _, r := range c.runs {
		wanted[r.experiment.Namespace], wanted[c.Namespace] = true, true
	}
	for namespace, w := range c.watches {
		if !wanted[namespace] || ctx.Err() != nil {
			w.stop()
			delete(c.watches, namespace)
		}
	}
	for namespace := range wanted {
		if c.watches[namespace] == nil && ctx.Err() == nil {
			c.watches[namespace] = c.watch(ctx, namespace)
		}
	}
}

// readEarlierEvents reads an experiment's events from before its run was known. It reads only those of the experiment,
// because a shared namespace has very many. Its other objects are created later, and their events wait until they are known.
func (c *Collector) readEarlierEvents(ctx context.Context, e *v1alpha1.Experiment) {
	about := fields.OneTermEqualSelector("involvedObject.uid", string(e.UID)).String()
	list, err := c.Kubernetes.CoreV1().Events(e.Namespace).List(ctx, metav1.ListOptions{FieldSelector: about})
	if err != nil {
		return // the next round tries again, and the watch reports the error
	}
	for i := range list.Items {
		c.receive(&list.Items[i])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.runs[e.UID]; r != nil {
		r.earlierEventsRead = true
	}
}

func (c *Collector) watch(ctx context.Context, namespace string) *watch {
	ctx, stop := context.WithCancel(ctx)
	w := &watch{collector: c, stop: stop}
	events := c.Kubernetes.CoreV1().Events(namespace)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := events.List(ctx, options)
			w.recordResult(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (kubewatch.Interface, error) {
			stream, err := events.Watch(ctx, options)
			w.recordResult(err)
			return stream, err
		},
	}
	reflector := cache.NewReflectorWithOptions(source, &corev1.Event{}, w, cache.ReflectorOptions{Name: "events of " + namespace})
	go reflector.RunWithContext(ctx)
	return w
}

// recordResult records the result of the last request.
func (w *watch) recordResult(err error) {
	w.collector.mu.Lock()
	defer w.collector.mu.Unlock()
	if err != nil && w.failing == nil {
		w.since = time.Now()
	}
	w.failing = err
}

// watchError is the error of a namespace's watch and since when it has failed, nil if it works.
func (c *Collector) watchError(namespace string) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watches[namespace]; w != nil {
		return w.since, w.failing
	}
	return time.Time{}, nil
}

// Add implements cache.ReflectorStore.
func (w *watch) Add(object any) error {
	if event, ok := object.(*corev1.Event); ok {
		w.collector.receive(event)
	}
	return nil
}

// Update handles an event that occurred again.
func (w *watch) Update(object any) error { return w.Add(object) }

// Delete does nothing, because the cluster deletes old events.
func (w *watch) Delete(any) error { return nil }

// Replace adds all events of a list.
func (w *watch) Replace(objects []any, _ string) error {
	for _, object := range objects {
		_ = w.Add(object) // never an error
	}
	return nil
}

// Resync does nothing.
func (w *watch) Resync() error { return nil }
