package events

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// watch of one namespace's events. As a cache.ReflectorStore it hands them on and stores nothing.
type watch struct {
	collector *Collector
	stop      context.CancelFunc

	// failing is why lists and watches do not work, since then; the collector's lock is held.
	failing error
	since   time.Time
}

// watchOnly keeps watches of the runs' namespaces and of the platform's, and begins those anew whose events are to be looked at again.
func (c *Collector) watchOnly(ctx context.Context, again map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := map[string]bool{}
	for _, r := range c.runs {
		wanted[r.experiment.Namespace], wanted[c.Namespace] = true, true
	}
	for namespace, w := range c.watches {
		if !wanted[namespace] || again[namespace] || ctx.Err() != nil {
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

func (c *Collector) watch(ctx context.Context, namespace string) *watch {
	ctx, stop := context.WithCancel(ctx)
	w := &watch{collector: c, stop: stop}
	events := c.Kubernetes.CoreV1().Events(namespace)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := events.List(ctx, options)
			w.note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (kubewatch.Interface, error) {
			stream, err := events.Watch(ctx, options)
			w.note(err)
			return stream, err
		},
	}
	reflector := cache.NewReflectorWithOptions(source, &corev1.Event{}, w, cache.ReflectorOptions{Name: "events of " + namespace})
	go reflector.RunWithContext(ctx)
	return w
}

// note how the last request fared.
func (w *watch) note(err error) {
	w.collector.mu.Lock()
	defer w.collector.mu.Unlock()
	if err != nil && w.failing == nil {
		w.since = time.Now()
	}
	w.failing = err
}

// trouble of a namespace's watch, and since when; nil where it works.
func (c *Collector) trouble(namespace string) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watches[namespace]; w != nil {
		return w.since, w.failing
	}
	return time.Time{}, nil
}

// Add implements cache.ReflectorStore, and so do the others.
func (w *watch) Add(object any) error {
	if event, ok := object.(*corev1.Event); ok {
		w.collector.take(event)
	}
	return nil
}

// Update is an event that came again.
func (w *watch) Update(object any) error { return w.Add(object) }

// Delete is the cluster's forgetting.
func (w *watch) Delete(any) error { return nil }

// Replace has all that there are.
func (w *watch) Replace(objects []any, _ string) error {
	for _, object := range objects {
		_ = w.Add(object) // never an error
	}
	return nil
}

// Resync does nothing.
func (w *watch) Resync() error { return nil }
