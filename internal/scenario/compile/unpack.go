package compile

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"strings"
)

// Unpack returns a reader of a source's content: unpacked if its key ends in .gz, and the archive's KML file if it ends in .kmz.
// An unpacked file may be of any size: the caller needs a limit.
func Unpack(key string, content []byte) (io.Reader, error) {
	switch ending := strings.ToLower(path.Ext(key)); ending {
	case ".gz":
		r, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return nil, errors.New("its name ends in .gz, but it is not packed by gzip")
		}
		return damaged{r}, nil
	case ".kmz":
		return unpackKMZ(content)
	}
	return bytes.NewReader(content), nil
}

// unpackKMZ returns doc.kml, or else the first KML file.
func unpackKMZ(content []byte) (io.Reader, error) {
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, errors.New("its name ends in .kmz, but it is not a ZIP archive")
	}
	var found *zip.File
	for _, f := range archive.File {
		if strings.EqualFold(path.Ext(f.Name), ".kml") && (found == nil || f.Name == "doc.kml") {
			found = f
		}
	}
	if found == nil {
		return nil, errors.New("the archive has no KML file: want doc.kml in it")
	}
	r, err := found.Open()
	if err != nil {
		return nil, errors.New("the KML file in the archive cannot be unpacked")
	}
	return damaged{r}, nil
}

// damaged returns a plain error about a damaged packed file.
type damaged struct{ r io.Reader }

func (d damaged) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errors.New("it is damaged, or cut short: it cannot be unpacked")
	}
	return n, err
}
