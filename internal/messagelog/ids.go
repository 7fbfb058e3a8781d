package messagelog

import (
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
