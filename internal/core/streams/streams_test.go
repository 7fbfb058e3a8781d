package streams

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
)

func publisher(name, topic string, brokers ...string) Client {
	return Client{Name: name, Protocol: "mqtt", Brokers: brokers, Topics: []string{topic}}
}

func subscriber(name, filters string, brokers ...string) Client {
	return Client{Name: name, Protocol: "mqtt", Brokers: brokers, Filters: strings.Fields(filters)}
}

func by(protocol string, c Client) Client {
	c.Protocol = protocol
	return c
}

// passage is FROM TO FILTERS, with "strip" and "add" prefixes.
func passage(from, to, filters string, prefixes ...string) runapi.PlannedPassage {
	p := runapi.PlannedPassage{From: from, To: to, Filters: strings.Fields(filters)}
	if len(prefixes) == 2 {
		p.StripPrefix, p.AddPrefix = prefixes[0], prefixes[1]
	}
	return p
}

func both(one, other string) []runapi.PlannedPassage {
	return []runapi.PlannedPassage{passage(one, other, "#"), passage(other, one, "#")}
}

// heard lists a table as "PUBLISHER TOPIC or FILTERS > SUBSCRIBER", with the topic that it has there if that is another.
func heard(s *runapi.Streams) (all []string) {
	for _, row := range s.Rows {
		for _, from := range row.Publishers {
			for _, h := range row.Heard {
				for _, to := range s.Audiences[h.Audience] {
					all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s%s > %s %s", from, row.Topic, strings.Join(row.Filters, " "), to, h.Topic)))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestPassagesBetweenBrokersDecideWhoHearsWhom(t *testing.T) {
	// E3: nations with a publisher and a subscriber at their own broker.
	coalition := []Client{
		publisher("nor", "/NOR/bft", "nor/b"), publisher("prt", "/PRT/bft", "prt/b"), publisher("usa", "/USA/bft", "usa/b"),
		subscriber("NOR", "#", "nor/b"), subscriber("PRT", "#", "prt/b"), subscriber("USA", "#", "usa/b"),
	}
	own := []string{"nor /NOR/bft > NOR", "prt /PRT/bft > PRT", "usa /USA/bft > USA"}
	mediator := []runapi.PlannedPassage{passage("hub/mqtt", "hub/xmpp", "#", "e7/", ""), passage("hub/xmpp", "hub/mqtt", "#", "", "e7/")}
	for name, c := range map[string]struct {
		clients  []Client
		passages []runapi.PlannedPassage
		want     []string
	}{
		"brokers that nothing joins": {coalition, nil, own},
		"a bridge of everything goes both ways": {
			coalition, both("prt/b", "nor/b"), append([]string{"nor /NOR/bft > PRT", "prt /PRT/bft > NOR"}, own...),
		},
		"topics and directions of every bridge on the way": {
			coalition, []runapi.PlannedPassage{passage("nor/b", "prt/b", "/NOR/# /USA/#"), passage("prt/b", "nor/b", "/PRT/#"), passage("usa/b", "nor/b", "/USA/#")},
			append([]string{"nor /NOR/bft > PRT", "usa /USA/bft > PRT", "prt /PRT/bft > NOR", "usa /USA/bft > NOR"}, own...),
		},
		"subscriptions at the end of the way": {
			[]Client{publisher("nor", "/nor", "nor/b"), subscriber("prt", "/prt/#", "prt/b"), subscriber("usa", "/+", "prt/b")}, both("nor/b", "prt/b"),
			[]string{"nor /nor > usa"},
		},
		"protocols meet at a broker and over a gateway": {
			[]Client{by("amqp", publisher("a", "t", "hub/rabbit")), by("stomp", subscriber("s", "#", "hub/rabbit")),
				by("mqtt-sn", subscriber("sn", "#", "hub/gateway")), by("xmpp", subscriber("x", "#", "hub/prosody"))},
			both("hub/gateway", "hub/rabbit"), []string{"a t > s", "a t > sn"},
		},
		"with failover all brokers count": {
			[]Client{publisher("nor", "t", "hq/b", "spare/b"), subscriber("prt", "#", "spare/b"), subscriber("usa", "#", "other/b")}, nil, []string{"nor t > prt"},
		},
		"protocols decide where brokers are not known": {
			[]Client{publisher("nor", "t", "hq/b"), subscriber("prt", "#"), by("xmpp", subscriber("usa", "#")), by("", subscriber("swe", "#"))}, nil,
			[]string{"nor t > prt", "nor t > swe"},
		},
		"a mediator renames": {
			[]Client{publisher("nor", "e7/nor", "hub/mqtt"), publisher("out", "elsewhere", "hub/mqtt"), by("xmpp", publisher("swe", "swe", "hub/xmpp")),
				by("xmpp", subscriber("prt", "#", "hub/xmpp")), subscriber("usa", "e7/#", "hub/mqtt")},
			mediator, []string{"nor e7/nor > prt nor", "nor e7/nor > usa", "swe swe > prt", "swe swe > usa e7/swe"},
		},
		"topics of own programs are not known": {
			[]Client{{Name: "own", Protocol: "mqtt", AnyTopic: true, Filters: []string{"in"}}, subscriber("prt", "a/# b", "hq/b"), by("xmpp", subscriber("usa", "#"))}, nil,
			[]string{"own a/# b > prt", "own in > own"},
		},
		"a message under several topics counts once": {
			[]Client{publisher("nor", "t", "a"), subscriber("prt", "#", "a", "b")}, []runapi.PlannedPassage{passage("a", "b", "#", "", "x/")}, []string{"nor t > prt"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, heard(Table(c.clients, c.passages))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestALoopThatAddsPrefixesEnds(t *testing.T) {
	loop := []runapi.PlannedPassage{passage("a", "b", "#", "", "x/"), passage("b", "a", "#", "", "y/")}
	got := heard(Table([]Client{publisher("nor", "t", "a"), subscriber("prt", "x/y/x/#", "b")}, loop))
	if diff := cmp.Diff([]string{"nor t > prt x/y/x/t"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestStreamsShareRowsAndAudiences(t *testing.T) {
	var clients []Client
	for i := range 100 {
		clients = append(clients, publisher(fmt.Sprint("p", i), "same", "b"), publisher(fmt.Sprint("q", i), fmt.Sprint("own/", i), "b"), subscriber(fmt.Sprint("s", i), "#", "b"))
	}
	made := Table(clients, nil)
	if len(made.Rows) != 101 || len(made.Audiences) != 1 || len(made.Rows[0].Publishers) != 100 || len(made.Audiences[0]) != 100 {
		t.Errorf("%d rows, %d audiences; want 101 rows, of which the first has 100 publishers, and one audience of 100", len(made.Rows), len(made.Audiences))
	}
}

func TestAThousandPairsAreMatchedAtOnce(t *testing.T) {
	var clients []Client
	for i := range 1000 { // as in E8
		clients = append(clients, publisher(fmt.Sprint("p", i), fmt.Sprint("e8/", i), "b"), subscriber(fmt.Sprint("s", i), fmt.Sprint("e8/", i), "b"))
	}
	start := time.Now()
	if got := heard(Table(clients, nil)); len(got) != 1000 || time.Since(start) > 10*time.Second {
		t.Errorf("%d deliveries after %s; want 1000 within 10 s on a busy machine", len(got), time.Since(start))
	}
}
