package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"vignette.dev/vignette/internal/console/mapdata"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// registerMaps adds the paths of maps and of previews of scenarios.
func (c *Console) registerMaps() {
	maps := mapdata.New()
	run := "GET /console/v1/namespaces/{namespace}/runs/{uid}/"
	c.mux.Handle(run+"map", c.forUsers(func(w http.ResponseWriter, r *http.Request, user *User) error {
		made, err := maps.Map(r.Context(), sourceOf(user, r.PathValue("namespace")), r.PathValue("uid"))
		return answerMap(w, made, err)
	}))
	c.mux.Handle(run+"links", c.forUsers(func(w http.ResponseWriter, r *http.Request, user *User) error {
		query, err := linksQuery(r.URL.Query())
		if err != nil {
			return err
		}
		made, err := maps.Links(r.Context(), sourceOf(user, r.PathValue("namespace")), r.PathValue("uid"), query)
		return answerMap(w, made, err)
	}))
	c.mux.Handle("POST /console/v1/scenario/preview", c.forUsers(func(w http.ResponseWriter, r *http.Request, _ *User) error {
		query, err := previewQuery(r.URL.Query())
		if err != nil {
			return err
		}
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mapdata.MaxPreviewBytes))
		if err != nil {
			return Errorf(http.StatusRequestEntityTooLarge, "the objects have more than %d MiB, or did not arrive whole", mapdata.MaxPreviewBytes>>20)
		}
		made, err := maps.Preview(r.Context(), text, query)
		return answerMap(w, made, err)
	}))
}

// answerMap writes an answer, or its error in the console's words.
func answerMap(w http.ResponseWriter, made any, err error) error {
	var known *mapdata.Error
	switch {
	case errors.As(err, &known):
		return &Error{Status: known.Status, Message: known.Message}
	case errors.Is(err, context.Canceled):
		return Errorf(http.StatusServiceUnavailable, "the browser no longer waits")
	case err != nil:
		return err
	}
	return WriteJSON(w, made)
}

// linksQuery reads network, at (seconds after T0), hopsFrom and expected.
func linksQuery(values url.Values) (query mapdata.LinksQuery, err error) {
	query = mapdata.LinksQuery{Network: values.Get("network"), HopsFrom: values.Get("hopsFrom")}
	if text := values.Get("expected"); text != "" {
		if query.Expected, err = strconv.ParseBool(text); err != nil {
			return query, Errorf(http.StatusBadRequest, "expected %q: want true or false", text)
		}
	}
	if values.Has("at") {
		at, err := secondsIn(values, "at")
		if err != nil {
			return query, err
		}
		query.At = &at
	}
	return query, nil
}

// previewQuery reads at (seconds), limit (dB), from and to.
func previewQuery(values url.Values) (query mapdata.PreviewQuery, err error) {
	if values.Has("at") {
		if query.At, err = secondsIn(values, "at"); err != nil {
			return query, err
		}
	}
	if text := values.Get("limit"); text != "" {
		if query.LimitDB, err = strconv.ParseFloat(text, 64); err != nil || !(query.LimitDB > 0 && query.LimitDB < 1000) {
			return query, Errorf(http.StatusBadRequest, "limit %q: want a pathloss in dB above 0, such as 121", text)
		}
	}
	for name, number := range map[string]*int{"from": &query.From, "to": &query.To} {
		if text := values.Get(name); text != "" {
			if *number, err = strconv.Atoi(text); err != nil {
				return query, Errorf(http.StatusBadRequest, "%s %q: want the number of a platform", name, text)
			}
		}
	}
	return query, nil
}

// maxSeconds is longer than any scenario.
const maxSeconds = 366 * 24 * 3600

func secondsIn(values url.Values, name string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(values.Get(name), 64)
	if err != nil || !(seconds >= 0 && seconds <= maxSeconds) {
		return 0, Errorf(http.StatusBadRequest, "%s %q: want seconds from 0 to %d", name, values.Get(name), maxSeconds)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// sourceOf a user in a namespace.
func sourceOf(user *User, namespace string) mapdata.Source {
	sender := &http.Client{Transport: user.Transport}
	base := strings.TrimRight(user.Server.String(), "/")
	return mapdata.Source{Archive: client.New(base+runapi.ArchivePath(namespace), sender, nil), Objects: &objects{base, sender}, Namespace: namespace}
}

// objects are read from the API server as the user. An error has no words for users.
type objects struct {
	base string
	http *http.Client
}

func (o *objects) Scenario(ctx context.Context, namespace, name string) (*v1alpha1.Scenario, error) {
	read := &v1alpha1.Scenario{}
	group := v1alpha1.GroupVersion
	return read, o.get(ctx, "/apis/"+group.Group+"/"+group.Version+"/namespaces/"+url.PathEscape(namespace)+"/scenarios/"+url.PathEscape(name), read)
}

func (o *objects) ConfigMap(ctx context.Context, namespace, name, key string) ([]byte, error) {
	read := &corev1.ConfigMap{}
	if err := o.get(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/configmaps/"+url.PathEscape(name), read); err != nil {
		return nil, err
	}
	if binary, known := read.BinaryData[key]; known {
		return binary, nil
	}
	text, known := read.Data[key]
	if !known {
		return nil, fmt.Errorf("ConfigMap %s has no key %s", name, key)
	}
	return []byte(text), nil
}

// maxObjectBytes of an answer; the API server keeps no larger object.
const maxObjectBytes = 4 << 20

func (o *objects) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.base+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := o.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, maxObjectBytes)).Decode(into)
}
