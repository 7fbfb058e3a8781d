package wire

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
)

const urn = "urn:nato:topics"

func expression(dialect, text string) TopicExpression {
	return TopicExpression{Dialect: dialect, Text: text, Namespaces: map[string]string{"t": urn}}
}

func topic(t *testing.T, text string) Topic {
	t.Helper()
	found, err := expression(DialectConcrete, text).Topic()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFullExpressionsMatchAsWSTopicsSays(t *testing.T) {
	for _, c := range []struct {
		expression string
		matches    []string
		not        []string
	}{
		{"t:a/b", []string{"t:a/b"}, []string{"t:a", "a/b", "t:a/b/c", "t:a/t:b"}},
		{"t:a/*", []string{"t:a/b", "t:a/t:c"}, []string{"t:a", "t:a/b/c", "a/b"}},
		{"t:a//b", []string{"t:a/b", "t:a/c/b", "t:a/c/d/b"}, []string{"t:a", "t:a/b/c", "t:b"}},
		{"t:a//*", []string{"t:a/b", "t:a/b/c"}, []string{"t:a", "t:b/c"}},
		{"t:a//.", []string{"t:a", "t:a/b", "t:a/b/c"}, []string{"t:b", "a"}},
		{"t:a/.", []string{"t:a"}, []string{"t:a/b"}},
		{"t:*", []string{"t:a", "t:b"}, []string{"a", "t:a/b"}},
		{"t://b", []string{"t:b", "t:a/b", "t:a/c/t:b"}, []string{"b", "a/b", "t:a", "t:a/b/c"}},
		{"t://*", []string{"t:b", "t:a/b/c"}, []string{"b", "a/t:b"}},
		{"t://b//.", []string{"t:b", "t:a/b", "t:a/b/c"}, []string{"a/b", "t:c"}},
		{"*/b", []string{"t:a/b", "a/b"}, []string{"b", "a/b/c"}},
		{"//*", []string{"a", "t:a", "a/b/c"}, nil},
		{"a|t:b/c", []string{"a", "t:b/c"}, []string{"t:b", "b/c"}},
		{"a//b//.", []string{"a/b", "a/x/b/y/z"}, []string{"a/x", "b"}},
	} {
		filter, err := expression(DialectFull, c.expression).Filter()
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		for _, text := range c.matches {
			if !filter.Match(topic(t, text)) {
				t.Errorf("%s does not match %s", c.expression, text)
			}
		}
		for _, text := range c.not {
			if filter.Match(topic(t, text)) {
				t.Errorf("%s matches %s", c.expression, text)
			}
		}
	}
}

func TestExpressionsThatAreNoneAreFaults(t *testing.T) {
	for _, c := range []struct {
		dialect, text string
		kind          FaultKind
	}{
		{DialectSimple, "a/b", InvalidTopicExpression},
		{DialectSimple, "", InvalidTopicExpression},
		{DialectConcrete, "a/*", InvalidTopicExpression},
		{DialectConcrete, "a//b", InvalidTopicExpression},
		{DialectConcrete, "x:a", InvalidTopicExpression},
		{DialectFull, "a/", InvalidTopicExpression},
		{DialectFull, "/a", InvalidTopicExpression},
		{DialectFull, "a|", InvalidTopicExpression},
		{DialectFull, ".", InvalidTopicExpression},
		{DialectFull, "a/1b", InvalidTopicExpression},
		{DialectFull, strings.Repeat("a/", 300) + "a", InvalidTopicExpression},
		{DialectFull, strings.Repeat("a|", 300) + "a", InvalidTopicExpression},
		{"http://www.w3.org/TR/1999/REC-xpath-19991116", "a", TopicExpressionDialectUnknown},
	} {
		_, err := expression(c.dialect, c.text).Filter()
		if fault, ok := errors.AsType[*Fault](err); !ok || fault.Kind != c.kind {
			t.Errorf("%s in %s: %v; want %s", c.text, c.dialect, err, c.kind)
		}
	}
}

// letters are those of random topics: special ones in MQTT, XML, the escaping and ActiveMQ.
var letters = []rune("abx_x0019F{}%:.-*>#+é ü\U0001F600\t'\"<&")

func randomLevel(r *rand.Rand) string {
	if r.IntN(12) == 0 {
		return "{urn:a%2Fb}c"
	}
	text := make([]rune, r.IntN(7))
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	return strings.NewReplacer("+", "p", "#", "h").Replace(string(text))
}

func randomTopic(r *rand.Rand) string {
	levels := make([]string, 1+r.IntN(5))
	for i := range levels {
		levels[i] = randomLevel(r)
	}
	return strings.Join(levels, "/")
}

func randomFilter(r *rand.Rand, mqtt string) string {
	levels := strings.Split(mqtt, "/")
	for i := range levels {
		switch r.IntN(6) {
		case 0:
			levels[i] = "+"
		case 1:
			return strings.Join(append(levels[:i], "#"), "/")
		case 2:
			levels[i] = randomLevel(r)
		}
	}
	return strings.Join(levels, "/")
}

func TestTopicsOfMQTTSurviveAndFiltersMatchTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	matched := 0
	for range 5000 {
		mqtt := randomTopic(r)
		x := TopicOf(mqtt).Expression()
		names, err := x.Topic()
		if err != nil || names.MQTT() != mqtt {
			t.Fatalf("topic %q became %q and %q (%v)", mqtt, x.Text, names.MQTT(), err)
		}
		if d := DottedTopic(mqtt); DottedMQTT(d.Text) != mqtt {
			t.Fatalf("topic %q became %q and %q", mqtt, d.Text, DottedMQTT(d.Text))
		} else if _, err := d.Topic(); err != nil {
			t.Fatal(err)
		}
		filter := randomFilter(r, mqtt)
		if strings.HasPrefix(mqtt, "$") || mqtttopic.ValidFilter(filter) != nil {
			continue
		}
		full, err := FilterOf(filter).Filter()
		if err != nil {
			t.Fatalf("filter %q: %v", filter, err)
		}
		want := mqtttopic.Match(filter, mqtt)
		if want {
			matched++
		}
		if full.Match(names) != want {
			t.Fatalf("filter %q as %q and topic %q as %q: matches %v, in MQTT %v", filter, FilterOf(filter).Text, mqtt, x.Text, !want, want)
		}
	}
	if matched < 250 {
		t.Errorf("%d filters matched: too few to say anything", matched)
	}
}

func TestTopicsAreEscapedAsDocumented(t *testing.T) {
	for mqtt, want := range map[string]string{
		"/PRT/PRT-UNIT001/PRT-S003/location": "_x_/PRT/PRT-UNIT001/PRT-S003/location",
		"a/1b/.":                             "a/_x0031_b/_x002E_",
		"a b/_x_":                            "a_x0020_b/_x005F_x_",
		"{urn:a%2Fb}c/d":                     "t1:c/d",
		"vésuve/\U0001F600":                  "vésuve/\U0001F600",
	} {
		if x := TopicOf(mqtt).Expression(); x.Text != want {
			t.Errorf("topic %q is %q; want %q", mqtt, x.Text, want)
		}
	}
	for filter, want := range map[string]string{"#": "//*", "a/#": "a//.", "/#": "_x_//.", "+/b/+": "*/b/*", "+": "*"} {
		if x := FilterOf(filter); x.Text != want {
			t.Errorf("filter %q is %q; want %q", filter, x.Text, want)
		}
	}
	if x := DottedFilter("/PRT/+/a.b/#"); x.Text != "_x_.PRT.*.a_x002E_b.>" {
		t.Errorf("dotted filter %q", x.Text)
	}
}

func FuzzTopicExpression(f *testing.F) {
	f.Add(DialectFull, "t:a//b/*|//c/.", "a/b")
	f.Add(DialectConcrete, "t:a/b", "{urn:x}a")
	f.Fuzz(func(t *testing.T, dialect, text, mqtt string) {
		filter, err := expression(dialect, text).Filter()
		if err == nil {
			filter.Match(TopicOf(mqtt))
		}
		if mqtttopic.Valid(mqtt) == nil && len(mqtt) < 300 {
			names, err := TopicOf(mqtt).Expression().Topic()
			if err == nil && names.MQTT() != mqtt {
				t.Fatalf("topic %q became %q", mqtt, names.MQTT())
			}
			if got := DottedMQTT(DottedTopic(mqtt).Text); got != mqtt {
				t.Fatalf("topic %q became %q", mqtt, got)
			}
		}
	})
}
