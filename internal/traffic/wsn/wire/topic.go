package wire

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Limits of topics.
const (
	maxLevels = 256
	maxPaths  = 64
)

// Name is a topic's name within its parent. A root topic's space is its topic namespace; empty for an ad-hoc one.
type Name struct{ Space, Local string }

// Topic is the path from a root topic down.
type Topic []Name

// Key is equal for equal topics only.
func (t Topic) Key() string {
	var b strings.Builder
	for _, n := range t {
		fmt.Fprintf(&b, "%d %s %s/", len(n.Space), n.Space, n.Local)
	}
	return b.String()
}

// TopicExpression is an expression as written in a message.
type TopicExpression struct {
	Dialect, Text string
	// Namespaces has the namespaces of the prefixes in Text.
	Namespaces map[string]string
}

// prefixed splits `prefix:name` or name.
func (x TopicExpression) prefixed(text string) (Name, error) {
	prefix, local, found := strings.Cut(text, ":")
	if !found {
		prefix, local = "", text
	}
	if !isNCName(local) || found && !isNCName(prefix) {
		return Name{}, fmt.Errorf("topic expression %q: %q is no name", x.Text, text)
	}
	if !found {
		return Name{Local: local}, nil
	}
	space, ok := x.Namespaces[prefix]
	if !ok {
		return Name{}, fmt.Errorf("topic expression %q: prefix %q is not declared", x.Text, prefix)
	}
	return Name{Space: space, Local: local}, nil
}

// Topic returns the topic of an expression in any dialect; an error if it may match several.
func (x TopicExpression) Topic() (Topic, error) {
	levels := strings.Split(strings.TrimSpace(x.Text), "/")
	switch {
	case x.Dialect != DialectSimple && x.Dialect != DialectConcrete && x.Dialect != DialectFull:
		return nil, &Fault{Kind: TopicExpressionDialectUnknown, Reason: fmt.Sprintf("dialect %q: want %s, Concrete or Full", x.Dialect, DialectSimple)}
	case x.Dialect == DialectSimple && len(levels) > 1:
		return nil, &Fault{Kind: InvalidTopicExpression, Reason: fmt.Sprintf("topic expression %q: the Simple dialect has root topics only", x.Text)}
	case len(levels) > maxLevels:
		return nil, &Fault{Kind: InvalidTopicExpression, Reason: fmt.Sprintf("topic expression has %d levels: want at most %d", len(levels), maxLevels)}
	}
	topic := make(Topic, len(levels))
	for i, level := range levels {
		name, err := x.prefixed(level)
		if err != nil {
			return nil, &Fault{Kind: InvalidTopicExpression, Reason: err.Error()}
		}
		topic[i] = name
	}
	return topic, nil
}

// Filter is a parsed topic expression: a union of paths.
type Filter []path

type path []step

// step goes from a topic to its children, or if deep to all its descendants (and itself, for a dot).
type step struct {
	deep bool
	// what is a name, any name, or the topic itself.
	what stepKind
	name Name
	// anySpace lets a wildcard match names of every namespace.
	anySpace bool
	// rooted is for prefix://name: the name may be at any depth, below a root topic of the name's namespace.
	rooted bool
}

type stepKind int

const (
	stepName stepKind = iota
	stepAny
	stepSelf
)

// Filter parses an expression of any dialect.
func (x TopicExpression) Filter() (Filter, error) {
	if x.Dialect != DialectFull {
		topic, err := x.Topic()
		if err != nil {
			return nil, err
		}
		one := make(path, len(topic))
		for i, name := range topic {
			one[i] = step{name: name}
		}
		return Filter{one}, nil
	}
	paths := strings.Split(strings.TrimSpace(x.Text), "|")
	if len(paths) > maxPaths {
		return nil, &Fault{Kind: InvalidTopicExpression, Reason: fmt.Sprintf("topic expression has %d paths: want at most %d", len(paths), maxPaths)}
	}
	var filter Filter
	for _, text := range paths {
		p, err := x.path(strings.TrimSpace(text))
		if err != nil {
			return nil, &Fault{Kind: InvalidTopicExpression, Reason: err.Error()}
		}
		filter = append(filter, p)
	}
	return filter, nil
}

// path parses a path of the Full dialect: [prefix:][//](name|*) followed by / or // and a name, * or a dot.
func (x TopicExpression) path(text string) (path, error) {
	prefix := ""
	if at := strings.Index(text, "://"); at >= 0 && isNCName(text[:at]) {
		prefix, text = text[:at+1], text[at+1:]
	}
	deep := strings.HasPrefix(text, "//")
	if text = strings.TrimPrefix(text, "//"); text == "" {
		return nil, fmt.Errorf("topic expression %q: a path is empty", x.Text)
	}
	var p path
	for first := true; ; first = false {
		end := strings.IndexByte(text, '/')
		word := text
		if end >= 0 {
			word = text[:end]
		}
		if first {
			word = prefix + word
		}
		s, err := x.step(word, first)
		if err != nil {
			return nil, err
		}
		if s.deep = deep; first && deep && prefix != "" {
			s.rooted, s.anySpace = true, true
		}
		if p = append(p, s); len(p) > maxLevels {
			return nil, fmt.Errorf("topic expression has more than %d levels", maxLevels)
		}
		if end < 0 {
			return p, nil
		}
		text = text[end+1:]
		deep = strings.HasPrefix(text, "/")
		text = strings.TrimPrefix(text, "/")
	}
}

func (x TopicExpression) step(word string, first bool) (step, error) {
	switch {
	case word == "*":
		return step{what: stepAny, anySpace: true}, nil
	case word == "." && !first:
		return step{what: stepSelf}, nil
	case first && strings.HasSuffix(word, ":*"):
		space, ok := x.Namespaces[strings.TrimSuffix(word, ":*")]
		if !ok {
			return step{}, fmt.Errorf("topic expression %q: prefix of %q is not declared", x.Text, word)
		}
		return step{what: stepAny, name: Name{Space: space}}, nil
	}
	name, err := x.prefixed(word)
	return step{name: name}, err
}

func (s step) matches(n Name) bool {
	switch s.what {
	case stepAny:
		return s.anySpace || s.name.Space == n.Space
	case stepName:
		return s.name == n || s.rooted && n == Name{Local: s.name.Local}
	}
	return false
}

// Match reports whether the filter matches a topic.
func (f Filter) Match(t Topic) bool {
	return slices.ContainsFunc(f, func(p path) bool { return p.match(t) })
}

// match follows all paths at once: reached[i] means that the steps so far can match the topic's first i levels.
func (p path) match(t Topic) bool {
	if p[0].rooted && (len(t) == 0 || t[0].Space != p[0].name.Space) {
		return false
	}
	var room [2][32]bool // most topics have fewer levels. A broker matches each message with all its subscriptions.
	reached, next := room[0][:], room[1][:]
	if len(t) >= len(reached) {
		reached, next = make([]bool, len(t)+1), make([]bool, len(t)+1)
	}
	reached, next = reached[:len(t)+1], next[:len(t)+1]
	reached[0] = true
	for _, s := range p {
		clear(next)
		below := false // a higher level has been reached, and the step goes to any depth
		for i := 0; i <= len(t); i++ {
			switch {
			case s.what == stepSelf:
				next[i] = reached[i] || s.deep && below
			case i > 0:
				next[i] = (reached[i-1] || s.deep && below) && s.matches(t[i-1])
			}
			below = below || i < len(t) && reached[i]
		}
		reached, next = next, reached
	}
	return reached[len(t)]
}

// isNCName reports whether a name is an XML name without a colon (Namespaces in XML 1.0, production NCName, by its fifth edition's characters).
func isNCName(s string) bool {
	for i, c := range s {
		if !isNameStart(c) && (i == 0 || !isNameRest(c)) {
			return false
		}
	}
	return s != ""
}

func isNameStart(c rune) bool {
	switch {
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return true
	case c < 0xc0 || c == 0xd7 || c == 0xf7 || c >= 0x300 && c <= 0x36f || c == 0x37e || c > 0xeffff || c == unicode.ReplacementChar:
		return false
	}
	return c <= 0x1fff || c == 0x200c || c == 0x200d || c >= 0x2070 && c <= 0x218f || c >= 0x2c00 && c <= 0x2fef ||
		c >= 0x3001 && c <= 0xd7ff || c >= 0xf900 && c <= 0xfdcf || c >= 0xfdf0 && c < 0xfffd || c >= 0x10000
}

func isNameRest(c rune) bool {
	return c == '-' || c == '.' || c >= '0' && c <= '9' || c == 0xb7 || c >= 0x300 && c <= 0x36f || c == 0x203f || c == 0x2040
}
