package console

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mapFile is a file that begins as a PMTiles file of a version, with tiles of a type.
func mapFile(t *testing.T, version, kind byte, rest string) string {
	t.Helper()
	header := make([]byte, mapHeaderBytes)
	copy(header, mapMagic)
	header[len(mapMagic)], header[mapTypeByte] = version, kind
	path := filepath.Join(t.TempDir(), "map.pmtiles")
	if err := os.WriteFile(path, append(header, rest...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnlyAMapThatThePageDrawsIsOpened(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, bytes.Repeat([]byte("map "), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"nowhere.pmtiles":     "map nowhere.pmtiles: there is no such file",
		filepath.Dir(text):    "it is a directory: want a PMTiles file",
		text + "/x.pmtiles":   "the file cannot be opened",
		text:                  "it is no PMTiles file: want one of version 3",
		mapFile(t, 2, 1, ""):  "it has PMTiles version 2: want 3",
		mapFile(t, 3, 99, ""): "its tiles have the type 99: want MVT, PNG, JPEG, WebP or AVIF",
	} {
		if _, err := OpenMap(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

func TestAMapThatTheUserMayNotReadIsRefusedBecauseOfThat(t *testing.T) {
	refused := &fs.PathError{Op: "open", Path: "map.pmtiles", Err: syscall.EACCES} // root may read every file
	if why := whyClosed(refused); why != "this user may not read the file" {
		t.Errorf("%q; want that the user may not read it", why)
	}
}

func TestTheBackgroundMapIsSentInRangesAndToUsersOnly(t *testing.T) {
	background, err := OpenMap(mapFile(t, 3, 1, "the tiles"))
	if err != nil {
		t.Fatal(err)
	}
	s := startLocalWith(t, nil, Config{Map: background})
	if answer := s.get("/console/v1/background"); answer.status != http.StatusUnauthorized {
		t.Errorf("%d without a session; want 401", answer.status)
	}
	s.logIn()
	part := s.get("/console/v1/background", "Range: bytes=131-135")
	if part.status != http.StatusPartialContent || part.body != "tiles" || part.header.Get("ETag") == "" {
		t.Errorf("%d %q, ETag %q; want a part of the file", part.status, part.body, part.header.Get("ETag"))
	}
	if answer := s.get("/console/v1/session"); !strings.Contains(answer.body, `"background":true`) {
		t.Errorf("%s; want that there is a map", answer.body)
	}
}

func TestAConsoleWithoutABackgroundMapSaysSo(t *testing.T) {
	s := startLocal(t, nil).logIn()
	if answer := s.get("/console/v1/background"); answer.status != http.StatusNotFound || !strings.Contains(answer.problem(), "--map") {
		t.Errorf("%d %s", answer.status, answer.body)
	}
	if answer := s.get("/console/v1/session"); !strings.Contains(answer.body, `"background":false`) {
		t.Errorf("%s; want that there is none", answer.body)
	}
}
