package console

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"time"
)

// MapFile is a PMTiles file, which maps show below terrain and tracks.
type MapFile struct {
	file     *os.File
	size     int64
	modified time.Time
}

const (
	// mapMagic begins a PMTiles file; the byte after it is the version.
	mapMagic, mapVersion = "PMTiles", 3
	// mapHeaderBytes of the file's header, and mapTypeByte in it has the type of its tiles.
	mapHeaderBytes, mapTypeByte = 127, 99
)

// mapTypes of tiles that the page draws: MVT, PNG, JPEG, WebP and AVIF.
var mapTypes = []byte{1, 2, 3, 4, 5}

// OpenMap opens a PMTiles file, which stays open; none without a path.
func OpenMap(path string) (*MapFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("map %s: %s", path, whyClosed(err))
	}
	m, err := mapOf(file)
	if err != nil {
		_ = file.Close() // it was only read
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return m, nil
}

// whyClosed says why a file cannot be opened.
func whyClosed(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.Is(err, fs.ErrPermission):
		return "this user may not read the file"
	default:
		return "the file cannot be opened: want a PMTiles file that this user may read"
	}
}

func mapOf(file *os.File) (*MapFile, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, errors.New("its size cannot be read")
	}
	if info.IsDir() {
		return nil, errors.New("it is a directory: want a PMTiles file")
	}
	header := make([]byte, mapHeaderBytes)
	if _, err := io.ReadFull(file, header); err != nil || string(header[:len(mapMagic)]) != mapMagic {
		return nil, fmt.Errorf("it is no PMTiles file: want one of version %d", mapVersion)
	}
	if version := header[len(mapMagic)]; version != mapVersion {
		return nil, fmt.Errorf("it has PMTiles version %d: want %d, as pmtiles convert makes it", version, mapVersion)
	}
	if kind := header[mapTypeByte]; !slices.Contains(mapTypes, kind) {
		return nil, fmt.Errorf("its tiles have the type %d: want MVT, PNG, JPEG, WebP or AVIF", kind)
	}
	return &MapFile{file, info.Size(), info.ModTime()}, nil
}

// background sends the map, of which a page asks for ranges.
func (c *Console) background(w http.ResponseWriter, r *http.Request, _ *User) error {
	m := c.config.Map
	if m == nil {
		return Errorf(http.StatusNotFound, "this console has no background map: start it with --map FILE.pmtiles")
	}
	w.Header().Set("Content-Type", "application/vnd.pmtiles")
	w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, m.size, m.modified.UnixNano()))
	http.ServeContent(w, r, "", m.modified, io.NewSectionReader(m.file, 0, m.size))
	return nil
}
