package client

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// announcements is the node on which these clients announce the nodes they create. No topic can have this name,
// as a topic's percent sign becomes %25.
const announcements = "%nodes"

// nodeOf returns the node of a topic. It escapes as % and two hexadecimal digits each byte that XML changes in an
// attribute (control characters, invalid UTF-8), and the percent sign itself.
func nodeOf(topic string) string {
	if !strings.ContainsFunc(topic, func(r rune) bool { return r == '%' || !plain(r) }) {
		return topic
	}
	var b strings.Builder
	for len(topic) > 0 {
		r, size := utf8.DecodeRuneInString(topic)
		if r == utf8.RuneError && size == 1 || r == '%' || !plain(r) {
			for _, one := range []byte(topic[:size]) {
				b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{one})))
			}
		} else {
			b.WriteString(topic[:size])
		}
		topic = topic[size:]
	}
	return b.String()
}

// plain reports whether XML 1.0 (2.2 and 3.3.3) keeps a character in an attribute. The replacement character means invalid UTF-8.
func plain(r rune) bool {
	return r >= ' ' && r != utf8.RuneError && inXML(r)
}

// inXML reports whether XML 1.0 allows a character (2.2).
func inXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000
}

// topicOf returns the topic of a node. In other clients' names, text that is no escape of nodeOf stays unchanged.
func topicOf(node string) string {
	if !strings.Contains(node, "%") {
		return node
	}
	var b strings.Builder
	for i := 0; i < len(node); i++ {
		if node[i] == '%' && i+2 < len(node) {
			if one, err := hex.DecodeString(node[i+1 : i+3]); err == nil {
				b.Write(one)
				i += 2
				continue
			}
		}
		b.WriteByte(node[i])
	}
	return b.String()
}
