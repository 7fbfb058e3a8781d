package messagelog

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Numbers are those of a sender's messages, kept across restarts in a small file beside the log. The log itself may have lost its
// beginning: the agent releases what is archived.
type Numbers struct {
	// Before is the last number of earlier starts, Last the last of all; 0 for none.
	Before, Last int64
	start        int64
	file         *os.File
}

// OpenNumbers finds a sender's numbers beside the log that EnvPath names. A crash leaves the planned start as it was, another start has
// a new one.
func OpenNumbers(sender string, start time.Time) (Numbers, error) {
	n := Numbers{start: start.UnixNano()}
	path := os.Getenv(EnvPath)
	if path == "" {
		return n, nil
	}
	folder, name := filepath.Split(path)
	// The dot excludes it from the shipped logs.
	file, err := os.OpenFile(folder+"."+name+"."+url.PathEscape(sender), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return n, fmt.Errorf("numbers of messages: %w", err)
	}
	text := make([]byte, 24)
	if _, err := file.ReadAt(text, 0); err != nil && err != io.EOF {
		file.Close()
		return n, fmt.Errorf("numbers of messages: %w", err)
	}
	n.file, n.Before, n.Last = file, int64(binary.BigEndian.Uint64(text[8:])), int64(binary.BigEndian.Uint64(text[16:]))
	if int64(binary.BigEndian.Uint64(text)) != n.start {
		n.Before = n.Last
	}
	return n, nil
}

// First is the number of the first message. After a crash of this start it is that of the next message which is not past, so that
// no id is used twice and no burst is sent. Messages are counted from the start, from 1.
func (n Numbers) First(isPast func(sinceStart int64) bool) int64 {
	number := n.Last + 1
	for n.Last > n.Before && isPast(number-n.Before) {
		number++
	}
	return number
}

// Note keeps the number of a message that is about to be triggered.
func (n Numbers) Note(number int64) error {
	if n.file == nil {
		return nil
	}
	text := make([]byte, 0, 24)
	for _, v := range [3]int64{n.start, n.Before, number} {
		text = binary.BigEndian.AppendUint64(text, uint64(v))
	}
	if _, err := n.file.WriteAt(text, 0); err != nil {
		return fmt.Errorf("numbers of messages: %w", err)
	}
	return nil
}
