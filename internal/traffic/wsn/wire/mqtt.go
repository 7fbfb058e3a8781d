package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"vignette.dev/vignette/internal/soap"
)

// Mapping of MQTT's topics, which are vignette's. A level is a topic's name. Levels that are no names are escaped as in SQL/XML (ISO
// 9075-14) and ECMA-376. A character that is not allowed there is _xHHHH_, its code in four (or eight) hexadecimal digits. An underscore before an x is
// _x005F_. An empty level, such as the one before a leading slash, is _x_. A name in a namespace is the level {NAMESPACE}NAME, where the
// namespace's / + # % { } are %HH.

// emptyLevel stands for a level without characters.
const emptyLevel = "_x_"

// escapeLevel makes a name of any text. The dot is left out where it separates levels.
func escapeLevel(level string, dots bool) string {
	if level == "" {
		return emptyLevel
	}
	var b strings.Builder
	for i, c := range level {
		escapes := c == '_' && strings.HasPrefix(level[i+1:], "x") || c == '.' && !dots
		switch {
		case !escapes && (isNameStart(c) || i > 0 && isNameRest(c)):
			b.WriteRune(c)
		case c > 0xffff:
			fmt.Fprintf(&b, "_x%08X_", c)
		default:
			fmt.Fprintf(&b, "_x%04X_", c)
		}
	}
	return b.String()
}

// unescapeLevel reverses escapeLevel; text that is no escape stays unchanged.
func unescapeLevel(name string) string {
	if name == emptyLevel {
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		if c, size := escaped(name[i:]); size > 0 {
			b.WriteRune(c)
			i += size
			continue
		}
		b.WriteByte(name[i])
		i++
	}
	return b.String()
}

// escaped reads _xHHHH_ or _xHHHHHHHH_.
func escaped(s string) (rune, int) {
	for _, digits := range []int{4, 8} {
		if size := digits + 3; len(s) >= size && strings.HasPrefix(s, "_x") && s[size-1] == '_' {
			if code, err := strconv.ParseUint(s[2:size-1], 16, 32); err == nil && utf8.ValidRune(rune(code)) && code <= utf8.MaxRune {
				return rune(code), size
			}
		}
	}
	return 0, 0
}

var (
	escapeSpace   = strings.NewReplacer("%", "%25", "/", "%2F", "+", "%2B", "#", "%23", "{", "%7B", "}", "%7D")
	unescapeSpace = strings.NewReplacer("%25", "%", "%2F", "/", "%2B", "+", "%23", "#", "%7B", "{", "%7D", "}")
)

// level returns the MQTT level of a name. Characters that MQTT does not allow in a topic stay escaped.
func (n Name) level() string {
	local := unescapeLevel(n.Local)
	if strings.ContainsAny(local, "/+#\x00") {
		local = n.Local
	}
	if n.Space == "" {
		return local
	}
	return "{" + escapeSpace.Replace(n.Space) + "}" + local
}

// nameOf returns the name of an MQTT level.
func nameOf(level string) Name {
	if space, local, found := strings.Cut(strings.TrimPrefix(level, "{"), "}"); found && level[0] == '{' {
		name := Name{Space: unescapeSpace.Replace(space), Local: local}
		if !isNCName(local) {
			name.Local = escapeLevel(local, true)
		}
		if name.Space != "" && soap.IsXMLText(name.Space) && name.level() == level {
			return name
		}
	}
	return Name{Local: escapeLevel(level, true)}
}

// TopicOf returns the topic of an MQTT topic.
func TopicOf(mqtt string) Topic {
	levels := strings.Split(mqtt, "/")
	topic := make(Topic, len(levels))
	for i, level := range levels {
		topic[i] = nameOf(level)
	}
	return topic
}

// MQTT returns the MQTT topic of a topic.
func (t Topic) MQTT() string {
	levels := make([]string, len(t))
	for i, name := range t {
		levels[i] = name.level()
	}
	return strings.Join(levels, "/")
}

// prefixes gives each namespace of an expression a prefix.
type prefixes map[string]string

func (p prefixes) name(n Name) string {
	if n.Space == "" {
		return n.Local
	}
	for prefix, space := range p {
		if space == n.Space {
			return prefix + ":" + n.Local
		}
	}
	prefix := "t" + strconv.Itoa(len(p)+1)
	p[prefix] = n.Space
	return prefix + ":" + n.Local
}

// Expression returns a topic's expression in the Concrete dialect.
func (t Topic) Expression() TopicExpression {
	used := prefixes{}
	words := make([]string, len(t))
	for i, name := range t {
		words[i] = used.name(name)
	}
	return TopicExpression{Dialect: DialectConcrete, Text: strings.Join(words, "/"), Namespaces: used}
}

// FilterOf returns the union of MQTT filters, in the Full dialect. + is *, # at the end is //. after a topic and //* alone.
func FilterOf(filters ...string) TopicExpression {
	used := prefixes{}
	var paths []string
	for _, filter := range filters {
		if p := fullPath(filter, used); !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return TopicExpression{Dialect: DialectFull, Text: strings.Join(paths, "|"), Namespaces: used}
}

func fullPath(filter string, used prefixes) string {
	if filter == "#" {
		return "//*"
	}
	parent, all := strings.CutSuffix(filter, "/#")
	var words []string
	for level := range strings.SplitSeq(parent, "/") {
		if level == "+" {
			words = append(words, "*")
			continue
		}
		words = append(words, used.name(nameOf(level)))
	}
	text := strings.Join(words, "/")
	if all {
		text += "//."
	}
	return text
}

// Dotted forms are for brokers with the Simple dialect only, such as Apache CXF's, which have no levels. A topic is then one name whose levels are
// separated by dots. Filters use the wildcards of ActiveMQ, on which CXF's broker runs: * for a level, > for all that follow.

// DottedTopic returns an MQTT topic in the Simple dialect.
func DottedTopic(mqtt string) TopicExpression {
	return dotted(mqtt, map[string]string{})
}

// DottedFilter returns an MQTT filter in the Simple dialect.
func DottedFilter(filter string) TopicExpression {
	return dotted(filter, map[string]string{"+": "*", "#": ">"})
}

func dotted(mqtt string, wildcards map[string]string) TopicExpression {
	var words []string
	for level := range strings.SplitSeq(mqtt, "/") {
		word, ok := wildcards[level]
		if !ok {
			word = escapeLevel(level, false)
		}
		words = append(words, word)
	}
	return TopicExpression{Dialect: DialectSimple, Text: strings.Join(words, ".")}
}

// DottedMQTT returns the MQTT topic, or filter if it has wildcards, of a dotted expression.
func DottedMQTT(text string) string {
	var levels []string
	for word := range strings.SplitSeq(strings.TrimSpace(text), ".") {
		switch word {
		case "*":
			word = "+"
		case ">":
			word = "#"
		default:
			word = Name{Local: word}.level()
		}
		levels = append(levels, word)
	}
	return strings.Join(levels, "/")
}
