package console

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

const (
	indexFile = "index.html"
	// noncePlaceholder stands in index.html where the nonce of the policy belongs.
	noncePlaceholder = "__CSP_NONCE__"
	// hashedFolder has files whose names change with their contents.
	hashedFolder = "assets/"
)

// unbuilt is the page of a program without one.
const unbuilt = `<!doctype html><html lang="en"><meta charset="utf-8"><title>vignette</title>
<h1>This program was built without the web console</h1>
<p>In a checkout of vignette: <code>make build</code>, then start <code>bin/vignette ui</code> again.</p></html>
`

// pages serves the build of the page.
type pages struct {
	files fs.FS
	index []byte
	mu    sync.Mutex
	known map[string]*asset
}

// asset is a file of the build, in the forms in which it is sent.
type asset struct {
	plain, gzip, brotli []byte
	etag                string
}

func newPages(files fs.FS) *pages {
	p := &pages{files: files, known: map[string]*asset{}}
	index, err := fs.ReadFile(files, indexFile)
	if err != nil {
		index = []byte(unbuilt)
	}
	p.index = index
	return p
}

// serve a file, or the page for a path of the page's own.
func (p *pages) serve(w http.ResponseWriter, r *http.Request) {
	if changes(r.Method) {
		WriteError(w, Errorf(http.StatusMethodNotAllowed, "%s is a page: it takes no %s", r.URL.Path, r.Method))
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name != "" && name != indexFile && fs.ValidPath(name) && !hidden(name) {
		if file := p.find(name); file != nil {
			file.serve(w, r, name)
			return
		}
	}
	if strings.HasPrefix(name, hashedFolder) {
		WriteError(w, Errorf(http.StatusNotFound, "the console has no file %s: after an update, reload the page", r.URL.Path))
		return
	}
	p.serveIndex(w)
}

// hidden reports whether a name is no file of the page: the placeholder, and compressed forms.
func hidden(name string) bool {
	return strings.HasPrefix(path.Base(name), ".") || strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".br")
}

// find a file; nil if there is none.
func (p *pages) find(name string) *asset {
	p.mu.Lock()
	defer p.mu.Unlock()
	if file, ok := p.known[name]; ok {
		return file
	}
	plain, err := fs.ReadFile(p.files, name)
	if err != nil {
		return nil // a name of the page's own; it is not kept, as there is no end of them
	}
	sum := sha256.Sum256(plain)
	file := &asset{plain: plain, etag: `"` + hex.EncodeToString(sum[:16]) + `"`}
	file.brotli, _ = fs.ReadFile(p.files, name+".br") // absent forms stay empty
	if file.gzip, err = fs.ReadFile(p.files, name+".gz"); err != nil {
		file.gzip = compressed(name, plain)
	}
	p.known[name] = file
	return file
}

// leastCompressed is the size below which compression gains nothing.
const leastCompressed = 1 << 10

// compressed returns the gzip form of a file; nothing where that is not smaller.
func compressed(name string, plain []byte) []byte {
	kind := mime.TypeByExtension(path.Ext(name))
	if len(plain) < leastCompressed || strings.HasPrefix(kind, "image/png") || strings.HasPrefix(kind, "font/woff") {
		return nil
	}
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil
	}
	_, _ = writer.Write(plain) // a buffer takes all
	if writer.Close() != nil || out.Len() >= len(plain) {
		return nil
	}
	return out.Bytes()
}

func (a *asset) serve(w http.ResponseWriter, r *http.Request, name string) {
	header := w.Header()
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" {
		kind = "application/octet-stream"
	}
	header.Set("Content-Type", kind)
	header.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(name, hashedFolder) {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	header.Set("Vary", "Accept-Encoding")
	content := a.plain
	switch accepted := r.Header.Get("Accept-Encoding"); {
	case len(a.brotli) > 0 && accepts(accepted, "br"):
		content = a.brotli
		header.Set("Content-Encoding", "br")
	case len(a.gzip) > 0 && accepts(accepted, "gzip"):
		content = a.gzip
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("ETag", strings.TrimSuffix(a.etag, `"`)+"-"+header.Get("Content-Encoding")+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// accepts reports whether a header Accept-Encoding names a form.
func accepts(header, form string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == form {
			return strings.ReplaceAll(weight, " ", "") != "q=0"
		}
	}
	return false
}

// serveIndex sends the page with a nonce of this answer, for its scripts and styles.
func (p *pages) serveIndex(w http.ResponseWriter) {
	nonce := randomText()
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", pagePolicy(nonce))
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	_, _ = w.Write(bytes.ReplaceAll(p.index, []byte(noncePlaceholder), []byte(nonce))) // the browser may be gone
}

// pagePolicy lets the page load and connect to this console only.
func pagePolicy(nonce string) string {
	return "default-src 'none'; script-src 'self' 'nonce-" + nonce + "'; style-src 'self' 'nonce-" + nonce + "'; " +
		"img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; frame-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
}

// randomText that nobody can guess.
func randomText() string {
	var random [24]byte
	_, _ = rand.Read(random[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}
