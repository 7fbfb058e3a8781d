package client

import (
	"encoding/xml"

	"vignette.dev/vignette/internal/traffic/xmpp"
)

// Kinds of requests. They begin the id of an IQ stanza, so that an answer shows its request's kind.
const (
	kindPublish   = 'p'
	kindAnnounce  = 'a'
	kindCreate    = 'c'
	kindSubscribe = 's'
	kindDiscover  = 'd'
	kindPing      = 'k'
)

// request is an IQ stanza (RFC 6120, 8.2.3) to the publish/subscribe service, or a ping to the server.
type request struct {
	XMLName xml.Name   `xml:"iq"`
	Type    string     `xml:"type,attr"`
	ID      string     `xml:"id,attr"`
	To      string     `xml:"to,attr"`
	PubSub  *pubsub    `xml:"http://jabber.org/protocol/pubsub pubsub,omitempty"`
	Items   *discovery `xml:"http://jabber.org/protocol/disco#items query,omitempty"`
	Ping    *empty     `xml:"urn:xmpp:ping ping,omitempty"`
}

type empty struct{}

// pubsub has the requests of XEP-0060: 6.1 subscribe, 7.1 publish, 8.1 create.
type pubsub struct {
	Publish   *publish       `xml:"publish,omitempty"`
	Create    *node          `xml:"create,omitempty"`
	Configure *configuration `xml:"configure,omitempty"`
	Subscribe *node          `xml:"subscribe,omitempty"`
}

type publish struct {
	Node string `xml:"node,attr"`
	Item struct {
		Payload *payload      `xml:",omitempty"`
		Node    *announcement `xml:",omitempty"`
	} `xml:"item"`
}

// announcement is the item that a publisher publishes to the node of announcements.
type announcement struct {
	XMLName xml.Name `xml:"urn:vignette:nodes node"`
	Name    string   `xml:"name,attr"`
}

type node struct {
	Node string `xml:"node,attr"`
	JID  string `xml:"jid,attr,omitempty"`
}

// configuration is a form (XEP-0004) with settings of a node.
type configuration struct {
	Form struct {
		Type   string  `xml:"type,attr"`
		Fields []field `xml:"field"`
	} `xml:"jabber:x:data x"`
}

type field struct {
	Name  string `xml:"var,attr"`
	Value string `xml:"value"`
}

// nodeConfiguration configures created nodes: anybody may subscribe and publish, and no item is kept, as with QoS 0.
func nodeConfiguration() *configuration {
	c := &configuration{}
	c.Form.Type = "submit"
	c.Form.Fields = []field{
		{"FORM_TYPE", "http://jabber.org/protocol/pubsub#node_config"},
		{"pubsub#persist_items", "0"}, {"pubsub#access_model", "open"}, {"pubsub#publish_model", "open"},
	}
	return c
}

// toService returns a request without id to the publish/subscribe service.
func toService(p pubsub) request {
	return request{Type: "set", To: xmpp.Service, PubSub: &p}
}

func publishRequest(topic string, content []byte) request {
	p := publish{Node: nodeOf(topic)}
	element := payloadOf(content)
	p.Item.Payload = &element
	return toService(pubsub{Publish: &p})
}

func announceRequest(name string) request {
	p := publish{Node: announcements}
	p.Item.Node = &announcement{Name: name}
	return toService(pubsub{Publish: &p})
}

func createRequest(name string) request {
	return toService(pubsub{Create: &node{Node: name}, Configure: nodeConfiguration()})
}

func subscribeRequest(name, jid string) request {
	return toService(pubsub{Subscribe: &node{Node: name, JID: jid}})
}

// discovery requests the nodes of the service, and holds the answer (XEP-0030; XEP-0060, 5.2).
type discovery struct {
	Items []struct {
		Node string `xml:"node,attr"`
	} `xml:"item"`
}

func discoverRequest() request {
	return request{Type: "get", To: xmpp.Service, Items: &discovery{}}
}

func pingRequest() request {
	return request{Type: "get", To: xmpp.Domain, Ping: &empty{}}
}

// answer is the answer to a request.
type answer struct {
	Type  string     `xml:"type,attr"`
	ID    string     `xml:"id,attr"`
	Items *discovery `xml:"http://jabber.org/protocol/disco#items query"`
	Error *failure   `xml:"error"`
}

// failure is a stanza error (RFC 6120, 8.3).
type failure struct {
	Text       string `xml:"urn:ietf:params:xml:ns:xmpp-stanzas text"`
	Conditions []struct {
		XMLName xml.Name
	} `xml:",any"`
}

// condition returns the error's defined condition, such as item-not-found.
func (f *failure) condition() string {
	for _, c := range f.Conditions {
		if c.XMLName.Space == "urn:ietf:params:xml:ns:xmpp-stanzas" {
			return c.XMLName.Local
		}
	}
	return "error"
}

// notification is an event (XEP-0060, 7.1.2.1 and 8.4.2).
type notification struct {
	Events []struct {
		Items []struct {
			Node  string `xml:"node,attr"`
			Items []item `xml:"item"`
		} `xml:"items"`
		Deleted []node `xml:"delete"`
	} `xml:"http://jabber.org/protocol/pubsub#event event"`
}
