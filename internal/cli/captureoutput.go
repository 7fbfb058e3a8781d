package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// captureOutput takes a capture. It keeps a file's old content until the capture has begun.
type captureOutput struct {
	io.Writer
	file *os.File // nil for standard output
	// made means that the file was not there before, begun that the capture writes it.
	made, begun bool
}

// openCapture opens the file before anything is created in the cluster.
func openCapture(name string, stdout io.Writer) (*captureOutput, error) {
	if name == "-" {
		return &captureOutput{Writer: stdout}, nil
	}
	const mode = 0o666
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	made := err == nil
	if errors.Is(err, fs.ErrExist) {
		file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, mode)
	}
	if err != nil {
		return nil, err
	}
	return &captureOutput{Writer: file, file: file, made: made}, nil
}

// begin empties the file. A pipe or a device has nothing to empty.
func (o *captureOutput) begin() error {
	o.begun = true
	if o.file == nil {
		return nil
	}
	if info, err := o.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	if err := o.file.Truncate(0); err != nil {
		return fmt.Errorf("%s cannot be emptied for the capture: write another file", o.file.Name())
	}
	return nil
}

// close the file, and remove it if the capture made it and did not begin.
func (o *captureOutput) close() {
	if o.file == nil {
		return
	}
	o.file.Close()
	if o.made && !o.begun {
		os.Remove(o.file.Name())
	}
}
