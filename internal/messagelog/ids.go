package messagelog

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MessageID returns the id of a sender's message of a number, from 1: sender_number.
func MessageID(sender string, number int64) string {
	return sender + "_" + strconv.FormatInt(number, 10)
}

// MessageNumber returns the number in an id of the sender, and reports whether it is one.
func MessageNumber(sender, id string) (int64, bool) {
	text, ok := strings.CutPrefix(id, sender+"_")
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil && number > 0
}

// LastTriggered returns the highest number of the sender's messages in the log that EnvPath names; 0 without one.
func LastTriggered(sender string) (int64, error) {
	path := os.Getenv(EnvPath)
	if path == "" {
		return 0, nil
	}
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("message log: %w", err)
	}
	defer f.Close()
	last := int64(0)
	_, err = Read(f, func(r Record) {
		if number, ok := MessageNumber(sender, r.ID); ok && r.Status == Triggered {
			last = max(last, number)
		}
	})
	return last, err
}
