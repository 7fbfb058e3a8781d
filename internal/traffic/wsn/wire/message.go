package wire

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/soap"
)

// NotificationMessage is one message of a Notify.
type NotificationMessage struct {
	// Subscription is the one that the message was sent for, and Producer the sender; without an address if absent.
	Subscription, Producer soap.EPR
	// Topic has no dialect if absent.
	Topic TopicExpression
	// Message is one element.
	Message []byte
}

// Subscribe is a consumer's request. A pull point is a consumer too.
type Subscribe struct {
	Consumer soap.EPR
	// Topics must all match; none match everything.
	Topics []TopicExpression
	// Termination is the text in the request; empty for none.
	Termination string
}

// Subscribed is the response.
type Subscribed struct {
	Subscription soap.EPR
	// Now is the broker's time, Termination the subscription's end; zero for never.
	Now, Termination time.Time
}

// RegisterPublisher is a publisher's request.
type RegisterPublisher struct {
	Topics      []TopicExpression
	Demand      bool
	Termination string
}

// --- writing

func (x TopicExpression) append(b *strings.Builder, name string) {
	fmt.Fprintf(b, `<%s`, name)
	for _, prefix := range slices.Sorted(maps.Keys(x.Namespaces)) {
		fmt.Fprintf(b, ` xmlns:%s="%s"`, prefix, soap.Escape(x.Namespaces[prefix]))
	}
	fmt.Fprintf(b, ` Dialect="%s">%s</%s>`, soap.Escape(x.Dialect), soap.Escape(x.Text), name)
}

func (n NotificationMessage) append(b *strings.Builder) {
	b.WriteString(`<wsnt:NotificationMessage>`)
	if n.Subscription.Address != "" {
		n.Subscription.Append(b, "wsnt:SubscriptionReference")
	}
	if n.Topic.Dialect != "" {
		n.Topic.append(b, "wsnt:Topic")
	}
	if n.Producer.Address != "" {
		n.Producer.Append(b, "wsnt:ProducerReference")
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
	s.Consumer.Append(&b, "wsnt:ConsumerReference")
	if len(s.Topics) > 0 {
		b.WriteString(`<wsnt:Filter>`)
		for _, t := range s.Topics {
			t.append(&b, "wsnt:TopicExpression")
		}
		b.WriteString(`</wsnt:Filter>`)
	}
	if s.Termination != "" {
		fmt.Fprintf(&b, `<wsnt:InitialTerminationTime>%s</wsnt:InitialTerminationTime>`, soap.Escape(s.Termination))
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
	s.Subscription.Append(&b, "wsnt:SubscriptionReference")
	b.WriteString(times(s.Termination, s.Now, false))
	b.WriteString(`</wsnt:SubscribeResponse>`)
	return b.String()
}

// RenewBody requests a new termination time; empty for none.
func RenewBody(termination string) string {
	if termination == "" {
		return `<wsnt:Renew><wsnt:TerminationTime xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/></wsnt:Renew>`
	}
	return `<wsnt:Renew><wsnt:TerminationTime>` + soap.Escape(termination) + `</wsnt:TerminationTime></wsnt:Renew>`
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
func PullPointBody(pullPoint soap.EPR) string {
	var b strings.Builder
	b.WriteString(`<wsnt:CreatePullPointResponse>`)
	pullPoint.Append(&b, "wsnt:PullPoint")
	b.WriteString(`</wsnt:CreatePullPointResponse>`)
	return b.String()
}

// CurrentMessageBody is the response: the message's element.
func CurrentMessageBody(message []byte) string {
	return `<wsnt:GetCurrentMessageResponse>` + string(message) + `</wsnt:GetCurrentMessageResponse>`
}

// RegisteredBody is the response.
func RegisteredBody(registration, consumer soap.EPR) string {
	var b strings.Builder
	b.WriteString(`<wsbr:RegisterPublisherResponse xmlns:wsbr="` + NSBrokered + `">`)
	registration.Append(&b, "wsbr:PublisherRegistrationReference")
	consumer.Append(&b, "wsbr:ConsumerReference")
	b.WriteString(`</wsbr:RegisterPublisherResponse>`)
	return b.String()
}

// --- reading

func want(e *soap.Element, space, local string) error {
	if e.Is(space, local) {
		return nil
	}
	if e == nil {
		return faultf(MalformedMessage, "body is empty: want %s", local)
	}
	return faultf(MalformedMessage, "body has {%s}%s: want %s", e.Name.Space, e.Name.Local, local)
}

// parseTopic reads a topic expression with the prefixes that it may use. Apache CXF and others omit the dialect against the
// schema: it defaults to the given one.
func parseTopic(e *soap.Element, missing string) TopicExpression {
	text := strings.TrimSpace(e.Text)
	return TopicExpression{Dialect: cmp.Or(strings.TrimSpace(e.Attribute("Dialect")), missing), Text: text, Namespaces: e.Prefixes(text)}
}

func parseNotifications(e *soap.Element) ([]NotificationMessage, error) {
	var messages []NotificationMessage
	for _, c := range e.Children {
		if !c.Is(NSBase, "NotificationMessage") {
			continue
		}
		var n NotificationMessage
		if s := c.Child(NSBase, "SubscriptionReference"); s != nil {
			n.Subscription = soap.ParseEPR(s)
		}
		if t := c.Child(NSBase, "Topic"); t != nil {
			n.Topic = parseTopic(t, DialectConcrete)
		}
		if p := c.Child(NSBase, "ProducerReference"); p != nil {
			n.Producer = soap.ParseEPR(p)
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
func ParseNotify(body *soap.Element) ([]NotificationMessage, error) {
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
func ParseMessages(body *soap.Element) ([]NotificationMessage, error) {
	if err := want(body, NSBase, "GetMessagesResponse"); err != nil {
		return nil, err
	}
	return parseNotifications(body)
}

// ParseSubscribe reads a subscription. It refuses filters other than topic expressions, and policies.
func ParseSubscribe(body *soap.Element) (Subscribe, error) {
	var s Subscribe
	if err := want(body, NSBase, "Subscribe"); err != nil {
		return s, err
	}
	consumer := body.Child(NSBase, "ConsumerReference")
	if consumer == nil {
		return s, faultf(SubscribeCreationFailed, "Subscribe has no ConsumerReference")
	}
	s.Consumer = soap.ParseEPR(consumer)
	if filter := body.Child(NSBase, "Filter"); filter != nil {
		for _, f := range filter.Children {
			if !f.Is(NSBase, "TopicExpression") {
				return s, &Fault{Kind: InvalidFilter, Unknown: f, Reason: fmt.Sprintf("filter %s is not known: want TopicExpression", f.Name.Local)}
			}
			s.Topics = append(s.Topics, parseTopic(f, DialectFull))
		}
	}
	if policy := body.Child(NSBase, "SubscriptionPolicy"); policy != nil && len(policy.Children) > 0 {
		return s, faultf(UnrecognizedPolicyRequest, "subscription policy %s is not known: want none", policy.Children[0].Name.Local)
	}
	if t := body.Child(NSBase, "InitialTerminationTime"); t != nil && !t.IsNil() {
		s.Termination = strings.TrimSpace(t.Text)
	}
	return s, nil
}

// ParseSubscribed reads the reference of a subscription.
func ParseSubscribed(body *soap.Element) (soap.EPR, error) {
	if err := want(body, NSBase, "SubscribeResponse"); err != nil {
		return soap.EPR{}, err
	}
	reference := body.Child(NSBase, "SubscriptionReference")
	if reference == nil {
		return soap.EPR{}, faultf(MalformedMessage, "SubscribeResponse has no SubscriptionReference")
	}
	return soap.ParseEPR(reference), nil
}

// ParseRenew reads the requested termination time; empty for none.
func ParseRenew(body *soap.Element) (string, error) {
	if err := want(body, NSBase, "Renew"); err != nil {
		return "", err
	}
	t := body.Child(NSBase, "TerminationTime")
	if t == nil {
		return "", faultf(UnacceptableTermination, "Renew has no TerminationTime")
	}
	if t.IsNil() {
		return "", nil
	}
	return strings.TrimSpace(t.Text), nil
}

// ParseGetMessages reads the most messages requested; 0 for all.
func ParseGetMessages(body *soap.Element) (int, error) {
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
func ParsePullPoint(body *soap.Element) (soap.EPR, error) {
	if err := want(body, NSBase, "CreatePullPointResponse"); err != nil {
		return soap.EPR{}, err
	}
	p := body.Child(NSBase, "PullPoint")
	if p == nil {
		return soap.EPR{}, faultf(MalformedMessage, "CreatePullPointResponse has no PullPoint")
	}
	return soap.ParseEPR(p), nil
}

// ParseGetCurrentMessage reads the requested topic.
func ParseGetCurrentMessage(body *soap.Element) (TopicExpression, error) {
	if err := want(body, NSBase, "GetCurrentMessage"); err != nil {
		return TopicExpression{}, err
	}
	t := body.Child(NSBase, "Topic")
	if t == nil {
		return TopicExpression{}, faultf(InvalidTopicExpression, "GetCurrentMessage has no Topic")
	}
	return parseTopic(t, DialectConcrete), nil
}

// ParseRegisterPublisher reads a registration.
func ParseRegisterPublisher(body *soap.Element) (RegisterPublisher, error) {
	var r RegisterPublisher
	if err := want(body, NSBrokered, "RegisterPublisher"); err != nil {
		return r, err
	}
	for _, c := range body.Children {
		text := strings.TrimSpace(c.Text)
		switch {
		case c.Is(NSBrokered, "Topic"):
			r.Topics = append(r.Topics, parseTopic(c, DialectFull))
		case c.Is(NSBrokered, "Demand"):
			r.Demand = text == "true" || text == "1"
		case c.Is(NSBrokered, "InitialTerminationTime"):
			r.Termination = text
		}
	}
	return r, nil
}
