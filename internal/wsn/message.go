package wsn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NotificationMessage is one message of a Notify.
type NotificationMessage struct {
	// Subscription is the one that the message was sent for, and Producer the sender; without an address if absent.
	Subscription, Producer EPR
	// Topic has no dialect if absent.
	Topic TopicExpression
	// Message is one element.
	Message []byte
}

// Subscribe is a consumer's request. A pull point is a consumer too.
type Subscribe struct {
	Consumer EPR
	// Topics must all match; none match everything.
	Topics []TopicExpression
	// Termination is the text in the request; empty for none.
	Termination string
}

// Subscribed is the response.
type Subscribed struct {
	Subscription EPR
	// Now is the broker's time, Termination the subscription's end; zero for unknown and never.
	Now, Termination time.Time
}

// RegisterPublisher is a publisher's request.
type RegisterPublisher struct {
	Publisher   EPR
	Topics      []TopicExpression
	Demand      bool
	Termination string
}

// --- writing

func (e EPR) append(b *strings.Builder, name string) {
	fmt.Fprintf(b, `<%s><wsa:Address>%s</wsa:Address>`, name, escape(e.Address))
	if len(e.Parameters) > 0 {
		b.WriteString(`<wsa:ReferenceParameters>`)
		for _, p := range e.Parameters {
			b.Write(p)
		}
		b.WriteString(`</wsa:ReferenceParameters>`)
	}
	fmt.Fprintf(b, `</%s>`, name)
}

func (x TopicExpression) append(b *strings.Builder, name string) {
	fmt.Fprintf(b, `<%s`, name)
	prefixes := make([]string, 0, len(x.Namespaces))
	for prefix := range x.Namespaces {
		prefixes = append(prefixes, prefix)
	}
	slices.Sort(prefixes)
	for _, prefix := range prefixes {
		fmt.Fprintf(b, ` xmlns:%s="%s"`, prefix, escape(x.Namespaces[prefix]))
	}
	fmt.Fprintf(b, ` Dialect="%s">%s</%s>`, escape(x.Dialect), escape(x.Text), name)
}

func (n NotificationMessage) append(b *strings.Builder) {
	b.WriteString(`<wsnt:NotificationMessage>`)
	if n.Subscription.Address != "" {
		n.Subscription.append(b, "wsnt:SubscriptionReference")
	}
	if n.Topic.Dialect != "" {
		n.Topic.append(b, "wsnt:Topic")
	}
	if n.Producer.Address != "" {
		n.Producer.append(b, "wsnt:ProducerReference")
	}
	b.WriteString(`<wsnt:Message>`)
	b.Write(n.Message)
	b.WriteString(`</wsnt:Message></wsnt:NotificationMessage>`)
}

func notifications(open, close string, messages []NotificationMessage) string {
	var b strings.Builder
	b.WriteString(open)
	for _, m := range messages {
		m.append(&b)
	}
	b.WriteString(close)
	return b.String()
}

// NotifyBody returns the body with messages.
func NotifyBody(messages ...NotificationMessage) string {
	return notifications(`<wsnt:Notify>`, `</wsnt:Notify>`, messages)
}

// Body returns the body of the request.
func (s Subscribe) Body() string {
	var b strings.Builder
	b.WriteString(`<wsnt:Subscribe>`)
	s.Consumer.append(&b, "wsnt:ConsumerReference")
	if len(s.Topics) > 0 {
		b.WriteString(`<wsnt:Filter>`)
		for _, t := range s.Topics {
			t.append(&b, "wsnt:TopicExpression")
		}
		b.WriteString(`</wsnt:Filter>`)
	}
	if s.Termination != "" {
		fmt.Fprintf(&b, `<wsnt:InitialTerminationTime>%s</wsnt:InitialTerminationTime>`, escape(s.Termination))
	}
	b.WriteString(`</wsnt:Subscribe>`)
	return b.String()
}

// times appends the times of a response; a zero termination time is nil.
func times(termination, now time.Time, terminationFirst bool) string {
	end := `<wsnt:TerminationTime>` + Time(termination) + `</wsnt:TerminationTime>`
	if termination.IsZero() {
		end = `<wsnt:TerminationTime xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>`
	}
	current := `<wsnt:CurrentTime>` + Time(now) + `</wsnt:CurrentTime>`
	if terminationFirst {
		return end + current
	}
	return current + end
}

// Body returns the body of the response.
func (s Subscribed) Body() string {
	var b strings.Builder
	b.WriteString(`<wsnt:SubscribeResponse>`)
	s.Subscription.append(&b, "wsnt:SubscriptionReference")
	b.WriteString(times(s.Termination, s.Now, false))
	b.WriteString(`</wsnt:SubscribeResponse>`)
	return b.String()
}

// RenewBody requests a new termination time; empty for none.
func RenewBody(termination string) string {
	if termination == "" {
		return `<wsnt:Renew><wsnt:TerminationTime xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/></wsnt:Renew>`
	}
	return `<wsnt:Renew><wsnt:TerminationTime>` + escape(termination) + `</wsnt:TerminationTime></wsnt:Renew>`
}

// RenewedBody is the response.
func RenewedBody(termination, now time.Time) string {
	return `<wsnt:RenewResponse>` + times(termination, now, true) + `</wsnt:RenewResponse>`
}

// EmptyBody returns an element of WS-BaseNotification without content, such as Unsubscribe.
func EmptyBody(name string) string { return `<wsnt:` + name + `/>` }

// BrokeredBody returns an element of WS-BrokeredNotification without content, such as DestroyRegistration.
func BrokeredBody(name string) string { return `<wsbr:` + name + ` xmlns:wsbr="` + NSBrokered + `"/>` }

// GetMessagesBody requests at most so many messages from a pull point.
func GetMessagesBody(most int) string {
	return `<wsnt:GetMessages><wsnt:MaximumNumber>` + strconv.Itoa(most) + `</wsnt:MaximumNumber></wsnt:GetMessages>`
}

// MessagesBody is a pull point's response.
func MessagesBody(messages ...NotificationMessage) string {
	return notifications(`<wsnt:GetMessagesResponse>`, `</wsnt:GetMessagesResponse>`, messages)
}

// PullPointBody is the response to CreatePullPoint.
func PullPointBody(pullPoint EPR) string {
	var b strings.Builder
	b.WriteString(`<wsnt:CreatePullPointResponse>`)
	pullPoint.append(&b, "wsnt:PullPoint")
	b.WriteString(`</wsnt:CreatePullPointResponse>`)
	return b.String()
}

// GetCurrentMessageBody requests a topic's last message.
func GetCurrentMessageBody(topic TopicExpression) string {
	var b strings.Builder
	b.WriteString(`<wsnt:GetCurrentMessage>`)
	topic.append(&b, "wsnt:Topic")
	b.WriteString(`</wsnt:GetCurrentMessage>`)
	return b.String()
}

// CurrentMessageBody is the response: the message's element.
func CurrentMessageBody(message []byte) string {
	return `<wsnt:GetCurrentMessageResponse>` + string(message) + `</wsnt:GetCurrentMessageResponse>`
}

// Body returns the body of the request.
func (r RegisterPublisher) Body() string {
	var b strings.Builder
	b.WriteString(`<wsbr:RegisterPublisher xmlns:wsbr="` + NSBrokered + `">`)
	if r.Publisher.Address != "" {
		r.Publisher.append(&b, "wsbr:PublisherReference")
	}
	for _, t := range r.Topics {
		t.append(&b, "wsbr:Topic")
	}
	fmt.Fprintf(&b, `<wsbr:Demand>%t</wsbr:Demand>`, r.Demand)
	if r.Termination != "" {
		fmt.Fprintf(&b, `<wsbr:InitialTerminationTime>%s</wsbr:InitialTerminationTime>`, escape(r.Termination))
	}
	b.WriteString(`</wsbr:RegisterPublisher>`)
	return b.String()
}

// RegisteredBody is the response.
func RegisteredBody(registration, consumer EPR) string {
	var b strings.Builder
	b.WriteString(`<wsbr:RegisterPublisherResponse xmlns:wsbr="` + NSBrokered + `">`)
	registration.append(&b, "wsbr:PublisherRegistrationReference")
	consumer.append(&b, "wsbr:ConsumerReference")
	b.WriteString(`</wsbr:RegisterPublisherResponse>`)
	return b.String()
}

// --- reading

// is reports whether a body is an element of a name.
func (e *Element) is(space, local string) bool {
	return e != nil && e.Name.Space == space && e.Name.Local == local
}

func want(e *Element, space, local string) error {
	if e.is(space, local) {
		return nil
	}
	if e == nil {
		return faultf(MalformedMessage, "body is empty: want %s", local)
	}
	return faultf(MalformedMessage, "body has {%s}%s: want %s", e.Name.Space, e.Name.Local, local)
}

func parseEPR(e *Element) EPR {
	var epr EPR
	if address := e.Child(NSAddressing, "Address"); address != nil {
		epr.Address = strings.TrimSpace(address.Text)
	}
	if parameters := e.Child(NSAddressing, "ReferenceParameters"); parameters != nil {
		for _, p := range parameters.Children {
			epr.Parameters = append(epr.Parameters, slices.Clone(p.Standalone()))
		}
	}
	return epr
}

// parseTopic reads a topic expression with the prefixes that it may use. Apache CXF and others omit the dialect against the
// schema: it defaults to the given one.
func parseTopic(e *Element, missing string) TopicExpression {
	x := TopicExpression{Dialect: strings.TrimSpace(e.Attribute("Dialect")), Text: strings.TrimSpace(e.Text)}
	if x.Dialect == "" {
		x.Dialect = missing
	}
	for s := e.inner; s != nil && strings.Contains(x.Text, ":"); s = s.before {
		if _, seen := x.Namespaces[s.prefix]; !seen && s.prefix != "" && strings.Contains(x.Text, s.prefix+":") {
			if x.Namespaces == nil {
				x.Namespaces = map[string]string{}
			}
			x.Namespaces[s.prefix] = s.uri
		}
	}
	return x
}

func parseNotifications(e *Element) ([]NotificationMessage, error) {
	var messages []NotificationMessage
	for _, c := range e.Children {
		if !c.is(NSBase, "NotificationMessage") {
			continue
		}
		var n NotificationMessage
		if s := c.Child(NSBase, "SubscriptionReference"); s != nil {
			n.Subscription = parseEPR(s)
		}
		if t := c.Child(NSBase, "Topic"); t != nil {
			n.Topic = parseTopic(t, DialectConcrete)
		}
		if p := c.Child(NSBase, "ProducerReference"); p != nil {
			n.Producer = parseEPR(p)
		}
		content := c.Child(NSBase, "Message")
		if content == nil || len(content.Children) != 1 {
			return nil, faultf(MalformedMessage, "a NotificationMessage has no Message with one element")
		}
		n.Message = content.Children[0].Standalone()
		messages = append(messages, n)
	}
	return messages, nil
}

// ParseNotify reads the messages of a Notify.
func ParseNotify(body *Element) ([]NotificationMessage, error) {
	if err := want(body, NSBase, "Notify"); err != nil {
		return nil, err
	}
	messages, err := parseNotifications(body)
	if err == nil && len(messages) == 0 {
		err = faultf(MalformedMessage, "Notify has no NotificationMessage")
	}
	return messages, err
}

// ParseMessages reads a pull point's response.
func ParseMessages(body *Element) ([]NotificationMessage, error) {
	if err := want(body, NSBase, "GetMessagesResponse"); err != nil {
		return nil, err
	}
	return parseNotifications(body)
}

// ParseSubscribe reads a subscription. It refuses filters other than topic expressions, and policies.
func ParseSubscribe(body *Element) (Subscribe, error) {
	var s Subscribe
	if err := want(body, NSBase, "Subscribe"); err != nil {
		return s, err
	}
	consumer := body.Child(NSBase, "ConsumerReference")
	if consumer == nil {
		return s, faultf(SubscribeCreationFailed, "Subscribe has no ConsumerReference")
	}
	s.Consumer = parseEPR(consumer)
	if filter := body.Child(NSBase, "Filter"); filter != nil {
		for _, f := range filter.Children {
			if !f.is(NSBase, "TopicExpression") {
				return s, &Fault{Kind: InvalidFilter, Unknown: f, Reason: fmt.Sprintf("filter %s is not known: want TopicExpression", f.Name.Local)}
			}
			s.Topics = append(s.Topics, parseTopic(f, DialectFull))
		}
	}
	if policy := body.Child(NSBase, "SubscriptionPolicy"); policy != nil && len(policy.Children) > 0 {
		return s, faultf(UnrecognizedPolicyRequest, "subscription policy %s is not known: want none", policy.Children[0].Name.Local)
	}
	if t := body.Child(NSBase, "InitialTerminationTime"); t != nil && !t.isNil() {
		s.Termination = strings.TrimSpace(t.Text)
	}
	return s, nil
}

func parseTime(e *Element) time.Time {
	if e == nil || e.isNil() {
		return time.Time{}
	}
	at, _ := ParseTermination(e.Text, time.Time{}) // for people and renewals only: an invalid time counts as none
	return at
}

// ParseSubscribed reads the response to a subscription.
func ParseSubscribed(body *Element) (Subscribed, error) {
	if err := want(body, NSBase, "SubscribeResponse"); err != nil {
		return Subscribed{}, err
	}
	reference := body.Child(NSBase, "SubscriptionReference")
	if reference == nil {
		return Subscribed{}, faultf(MalformedMessage, "SubscribeResponse has no SubscriptionReference")
	}
	return Subscribed{
		Subscription: parseEPR(reference), Now: parseTime(body.Child(NSBase, "CurrentTime")), Termination: parseTime(body.Child(NSBase, "TerminationTime")),
	}, nil
}

// ParseRenew reads the requested termination time; empty for none.
func ParseRenew(body *Element) (string, error) {
	if err := want(body, NSBase, "Renew"); err != nil {
		return "", err
	}
	t := body.Child(NSBase, "TerminationTime")
	if t == nil {
		return "", faultf(UnacceptableTermination, "Renew has no TerminationTime")
	}
	if t.isNil() {
		return "", nil
	}
	return strings.TrimSpace(t.Text), nil
}

// ParseGetMessages reads the most messages requested; 0 for all.
func ParseGetMessages(body *Element) (int, error) {
	if err := want(body, NSBase, "GetMessages"); err != nil {
		return 0, err
	}
	n := body.Child(NSBase, "MaximumNumber")
	if n == nil {
		return 0, nil
	}
	most, err := strconv.Atoi(strings.TrimSpace(n.Text))
	if err != nil || most < 0 {
		return 0, faultf(MalformedMessage, "MaximumNumber %q: want a number from 0", n.Text)
	}
	return most, nil
}

// ParsePullPoint reads the response to CreatePullPoint.
func ParsePullPoint(body *Element) (EPR, error) {
	if err := want(body, NSBase, "CreatePullPointResponse"); err != nil {
		return EPR{}, err
	}
	p := body.Child(NSBase, "PullPoint")
	if p == nil {
		return EPR{}, faultf(MalformedMessage, "CreatePullPointResponse has no PullPoint")
	}
	return parseEPR(p), nil
}

// ParseGetCurrentMessage reads the requested topic.
func ParseGetCurrentMessage(body *Element) (TopicExpression, error) {
	if err := want(body, NSBase, "GetCurrentMessage"); err != nil {
		return TopicExpression{}, err
	}
	t := body.Child(NSBase, "Topic")
	if t == nil {
		return TopicExpression{}, faultf(InvalidTopicExpression, "GetCurrentMessage has no Topic")
	}
	return parseTopic(t, DialectConcrete), nil
}

// ParseCurrentMessage reads the response: the message's element.
func ParseCurrentMessage(body *Element) ([]byte, error) {
	if err := want(body, NSBase, "GetCurrentMessageResponse"); err != nil {
		return nil, err
	}
	if len(body.Children) == 0 {
		return nil, faultf(MalformedMessage, "GetCurrentMessageResponse is empty")
	}
	return body.Children[0].Standalone(), nil
}

// ParseRegisterPublisher reads a registration.
func ParseRegisterPublisher(body *Element) (RegisterPublisher, error) {
	var r RegisterPublisher
	if err := want(body, NSBrokered, "RegisterPublisher"); err != nil {
		return r, err
	}
	for _, c := range body.Children {
		text := strings.TrimSpace(c.Text)
		switch {
		case c.is(NSBrokered, "PublisherReference"):
			r.Publisher = parseEPR(c)
		case c.is(NSBrokered, "Topic"):
			r.Topics = append(r.Topics, parseTopic(c, DialectFull))
		case c.is(NSBrokered, "Demand"):
			r.Demand = text == "true" || text == "1"
		case c.is(NSBrokered, "InitialTerminationTime"):
			r.Termination = text
		}
	}
	return r, nil
}

// ParseRegistered reads the reference of a registration.
func ParseRegistered(body *Element) (EPR, error) {
	if err := want(body, NSBrokered, "RegisterPublisherResponse"); err != nil {
		return EPR{}, err
	}
	r := body.Child(NSBrokered, "PublisherRegistrationReference")
	if r == nil {
		return EPR{}, faultf(MalformedMessage, "RegisterPublisherResponse has no PublisherRegistrationReference")
	}
	return parseEPR(r), nil
}
