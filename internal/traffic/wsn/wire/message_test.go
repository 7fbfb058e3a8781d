package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/soap"
)

const nffi = `<NFFIMessage xmlns="urn:nato:fft:protocols:nffi13"><track a='1'>x &amp; y<!-- c --></track></NFFIMessage>`

func parse(t *testing.T, body string) *soap.Message {
	t.Helper()
	m, err := ParseMessage(Envelope(soap.SOAP12, soap.Header{Action: "urn:a", MessageID: "urn:m", To: soap.EPR{Address: "http://nor:8080/"}}, body))
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return m
}

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	epr := soap.EPR{Address: "http://nor:8080/wsn?a&b", Parameters: [][]byte{[]byte(`<x:id xmlns:x="urn:x">7</x:id>`)}}
	now := time.UnixMilli(1588759108433).UTC()
	notification := NotificationMessage{Subscription: epr, Producer: soap.EPR{Address: "urn:p"}, Topic: TopicOf("/a/{urn:x}b").Expression(), Message: []byte(nffi)}
	same := func(name string, got, want any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	notify, err := ParseNotify(parse(t, NotifyBody(notification, notification)).Body)
	same("Notify", notify, []NotificationMessage{notification, notification}, err)
	pulled, err := ParseMessages(parse(t, MessagesBody(notification)).Body)
	same("GetMessagesResponse", pulled, []NotificationMessage{notification}, err)
	subscribe := Subscribe{Consumer: epr, Topics: []TopicExpression{FilterOf("a/#", "{urn:x}b/+")}, Termination: "PT60S"}
	s, err := ParseSubscribe(parse(t, subscribe.Body()).Body)
	same("Subscribe", s, subscribe, err)
	subscribed := Subscribed{Subscription: epr, Now: now, Termination: now.Add(time.Minute)}
	r, err := ParseSubscribed(parse(t, subscribed.Body()).Body)
	same("SubscribeResponse", r, epr, err)
	renew, err := ParseRenew(parse(t, RenewBody("PT60S")).Body)
	same("Renew", renew, "PT60S", err)
	renew, err = ParseRenew(parse(t, RenewBody("")).Body)
	same("Renew for ever", renew, "", err)
	most, err := ParseGetMessages(parse(t, GetMessagesBody(7)).Body)
	same("GetMessages", most, 7, err)
	pullPoint, err := ParsePullPoint(parse(t, PullPointBody(epr)).Body)
	same("CreatePullPointResponse", pullPoint, epr, err)
	current, err := ParseGetCurrentMessage(parse(t, GetCurrentMessageBody(notification.Topic)).Body)
	same("GetCurrentMessage", current, notification.Topic, err)
	content := parse(t, CurrentMessageBody([]byte(nffi))).Body.Children[0].Standalone()
	same("GetCurrentMessageResponse", string(content), nffi, nil)
	register := RegisterPublisher{Topics: []TopicExpression{notification.Topic}, Demand: true, Termination: Time(now)}
	p, err := ParseRegisterPublisher(parse(t, register.Body()).Body)
	same("RegisterPublisher", p, register, err)
	registered := parse(t, RegisteredBody(epr, soap.EPR{Address: "urn:c"})).Body.Child(NSBrokered, "PublisherRegistrationReference")
	same("RegisterPublisherResponse", soap.ParseEPR(registered), epr, nil)
}

// GetCurrentMessageBody requests a topic's last message.
func GetCurrentMessageBody(topic TopicExpression) string {
	var b strings.Builder
	b.WriteString(`<wsnt:GetCurrentMessage>`)
	topic.append(&b, "wsnt:Topic")
	b.WriteString(`</wsnt:GetCurrentMessage>`)
	return b.String()
}

// Body returns the body of the request.
func (r RegisterPublisher) Body() string {
	var b strings.Builder
	b.WriteString(`<wsbr:RegisterPublisher xmlns:wsbr="` + NSBrokered + `">`)
	for _, t := range r.Topics {
		t.append(&b, "wsbr:Topic")
	}
	fmt.Fprintf(&b, `<wsbr:Demand>%t</wsbr:Demand>`, r.Demand)
	if r.Termination != "" {
		fmt.Fprintf(&b, `<wsbr:InitialTerminationTime>%s</wsbr:InitialTerminationTime>`, soap.Escape(r.Termination))
	}
	b.WriteString(`</wsbr:RegisterPublisher>`)
	return b.String()
}

const bytesOfContent = "<>/ab&;\"'= \r\n\x00\xc3\xa9:!-]x"

func TestContentSurvivesByteByByte(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	contents := []string{
		nffi, "", " ", "<", "<a/>", "<a/> ", "<a>", "<a:b/>", `<?xml version="1.0"?><a/>`, "<!DOCTYPE a><a/>", "<a>&b;</a>", "<a>\r\n\t</a>", `<a x="1" x="2"/>`,
		`{"type": "Feature", "a": [1, 2]}` + "\r\n", "]]>", "\x00\xff", "\ufffe", string(soap.Embed([]byte("x"))), string(soap.Embed([]byte{0})), strings.Repeat("<a>", 70) + strings.Repeat("</a>", 70),
		`<a b="<"/>`, `<a><b></a></b>`, `<xml:a/>`, `<a xmlns:p="urn:p" p:b="1"><p:c/></a>`, "<a/><b/>", "a\r\rb", "\ufeff<a/>",
	}
	for range 800 {
		text := make([]byte, r.IntN(40))
		for i := range text {
			text[i] = bytesOfContent[r.IntN(len(bytesOfContent))]
		}
		contents = append(contents, string(text))
	}
	for _, content := range contents {
		checkContent(t, []byte(content))
	}
}

// checkContent sends content through an envelope and back, twice, as a broker would.
func checkContent(t *testing.T, content []byte) {
	t.Helper()
	element := soap.Embed(content)
	for range 2 {
		m, err := ParseMessage(Envelope(soap.SOAP11, soap.Header{Action: ActionNotify}, NotifyBody(NotificationMessage{Message: element})))
		if err != nil {
			t.Fatalf("content %q as %q: %v", content, element, err)
		}
		messages, err := ParseNotify(m.Body)
		if err != nil || len(messages) != 1 {
			t.Fatalf("content %q: %d messages, %v", content, len(messages), err)
		}
		element = messages[0].Message
	}
	if back, err := soap.Extract(element); err != nil || !bytes.Equal(back, content) {
		t.Fatalf("content %q became %q and %q (%v)", content, element, back, err)
	}
}

func TestXMLPayloadsAreXMLInTheMessage(t *testing.T) {
	if !bytes.Equal(soap.Embed([]byte(nffi)), []byte(nffi)) {
		t.Error("an NFFI message is not embedded as it is")
	}
	if text := string(soap.Embed([]byte(`{"a": "<"}`))); !strings.Contains(text, `{"a": "&lt;"}`) {
		t.Errorf("text is %s", text)
	}
}

func TestPrefixesOfTheEnvelopeGoWithTheContent(t *testing.T) {
	document := `<soap:Envelope xmlns:soap="` + soap.NSSOAP11 + `" xmlns:wsnt="` + NSBase + `" xmlns:q="urn:q" xmlns="urn:default"><soap:Body><wsnt:Notify><wsnt:NotificationMessage>` +
		`<wsnt:Message><track q:a="1"><q:b/><c xmlns="urn:c"/></track></wsnt:Message></wsnt:NotificationMessage></wsnt:Notify></soap:Body></soap:Envelope>`
	m, err := ParseMessage([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	messages, err := ParseNotify(m.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := `<track xmlns="urn:default" xmlns:q="urn:q" q:a="1"><q:b/><c xmlns="urn:c"/></track>`; string(messages[0].Message) != want {
		t.Errorf("content %s; want %s", messages[0].Message, want)
	}
}

func TestFaultsAreReadInBothVersions(t *testing.T) {
	for _, v := range []soap.Version{soap.SOAP11, soap.SOAP12} {
		for _, fault := range []*Fault{
			{Kind: UnacceptableTermination, Reason: "past <now>"}, {Kind: ResourceUnknown, Reason: "gone"}, {Kind: ServerBusy, Reason: "memory"},
			{Kind: InvalidFilter, Reason: "no", Unknown: &soap.Element{}}, {Kind: MalformedMessage, Reason: "two Bodies"}, {Kind: MustUnderstand, Reason: "what"},
		} {
			_, err := ParseMessage(FaultEnvelope(v, "urn:m", fault, time.Now()))
			got, ok := errors.AsType[*Fault](err)
			if !ok || got.Kind != fault.Kind || !strings.Contains(got.Reason, fault.Reason) {
				t.Errorf("SOAP %d: %v; want %v", v, err, fault)
			}
			if err.Error() != fault.Error() {
				t.Errorf("SOAP %d: read as %q; want %q", v, err, fault)
			}
		}
	}
}

func TestTerminationTimesAreAbsoluteOrRelative(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"PT60S": time.Minute, "PT1M0.5S": 60500 * time.Millisecond, "P1DT1H": 25 * time.Hour, "-PT1S": -time.Second,
		"2026-11-22T06:00:10Z": 10 * time.Second, "2026-11-22T07:00:10.25+01:00": 10250 * time.Millisecond, "2026-11-22T06:00:10": 10 * time.Second,
		"P999999999Y": latest,
	} {
		if at, err := ParseTermination(text, now); err != nil || at.Sub(now) != want {
			t.Errorf("%s is %v (%v); want %v from now", text, at, err, want)
		}
	}
	for _, text := range []string{"P", "PT", "60", "soon", "2026-11-22", "PT5"} {
		if at, err := ParseTermination(text, now); err == nil {
			t.Errorf("%s is %v; want an error", text, at)
		}
	}
	if at, err := ParseTermination(Duration(90*time.Second), now); err != nil || at.Sub(now) != 90*time.Second {
		t.Errorf("a duration of 90 s is %v (%v)", at, err)
	}
}

func FuzzMessage(f *testing.F) {
	for _, body := range []string{
		NotifyBody(NotificationMessage{Topic: TopicOf("/a/b").Expression(), Message: []byte(nffi)}), RenewBody("PT60S"), GetMessagesBody(3), EmptyBody("CreatePullPoint"),
		Subscribe{Consumer: soap.EPR{Address: "http://a"}, Topics: []TopicExpression{FilterOf("#")}}.Body(), RegisterPublisher{}.Body(), PullPointBody(soap.EPR{}),
		RegisteredBody(soap.EPR{}, soap.EPR{}), Subscribed{}.Body(), MessagesBody(), CurrentMessageBody([]byte("<a/>")), GetCurrentMessageBody(TopicOf("a").Expression()),
	} {
		f.Add(Envelope(soap.SOAP11, soap.Header{Action: "a"}, body))
	}
	f.Add(FaultEnvelope(soap.SOAP12, "", &Fault{Kind: InvalidFilter}, time.Now()))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseMessage(data)
		if err != nil {
			return
		}
		_, _ = ParseSubscribe(m.Body)
		_, _ = ParseSubscribed(m.Body)
		_, _ = ParseRenew(m.Body)
		_, _ = ParseGetMessages(m.Body)
		_, _ = ParsePullPoint(m.Body)
		_, _ = ParseGetCurrentMessage(m.Body)
		_, _ = ParseRegisterPublisher(m.Body)
		_, _ = ParseMessages(m.Body)
		messages, err := ParseNotify(m.Body)
		if err != nil {
			return
		}
		// Messages that a broker forwards stay readable.
		again, err := ParseMessage(Envelope(m.SOAP, m.Header, NotifyBody(messages...)))
		if err != nil {
			t.Fatalf("passed on: %v\n%s", err, data)
		}
		if passed, err := ParseNotify(again.Body); err != nil || len(passed) != len(messages) {
			t.Fatalf("passed on: %d messages, %v", len(passed), err)
		}
	})
}

func FuzzContent(f *testing.F) {
	f.Add([]byte(nffi))
	f.Add([]byte("<a\t/>"))
	f.Fuzz(func(t *testing.T, content []byte) { checkContent(t, content) })
}

func FuzzTermination(f *testing.F) {
	f.Add("P1Y2M3DT4H5M6.7S")
	f.Fuzz(func(t *testing.T, text string) {
		now := time.Now()
		if at, err := ParseTermination(text, now); err == nil && strings.HasPrefix(text, "P") && at.Before(now.Add(-time.Second)) {
			t.Fatalf("%s is %v, in the past", text, at)
		}
	})
}
