package xmpp

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// announcements is the node to which publishers of this kind publish the names of the nodes that they make. No topic has this name: the
// percent sign of a topic becomes %25.
const announcements = "%nodes"

// nodeOf is the node of a topic: its name, with a percent sign and two hexadecimal digits for each byte of what XML does not carry
// unchanged in an attribute (control characters, what is no UTF-8), and of the percent sign itself.
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

// plain tells whether XML 1.0 (2.2 and 3.3.3) carries a character unchanged in an attribute. The replacement character stands for bad UTF-8 too.
func plain(r rune) bool {
	return r >= ' ' && r != utf8.RuneError && inXML(r)
}

// inXML tells whether XML 1.0 allows a character (2.2).
func inXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000
}

// topicOf is the topic of a node. What looks like no escape of nodeOf, in names that others chose, stays as it is.
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
