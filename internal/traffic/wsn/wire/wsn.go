// Package wire reads and writes the messages of WS-Notification 1.3 (OASIS WS-BaseNotification, WS-BrokeredNotification and WS-Topics 1.3)
// in SOAP 1.1 and 1.2 with WS-Addressing 1.0, and sends them over HTTP.
package wire

// Namespaces.
const (
	NSBase       = "http://docs.oasis-open.org/wsn/b-2"
	NSBrokered   = "http://docs.oasis-open.org/wsn/br-2"
	NSTopics     = "http://docs.oasis-open.org/wsn/t-1"
	NSBaseFaults = "http://docs.oasis-open.org/wsrf/bf-2"
	NSResource   = "http://docs.oasis-open.org/wsrf/r-2"
	interfaces   = "http://docs.oasis-open.org/wsn/bw-2/"
	actionFault  = "http://docs.oasis-open.org/wsn/fault"
)

// Dialects of topic expressions (WS-Topics 1.3, section 8).
const (
	DialectSimple   = NSTopics + "/TopicExpression/Simple"
	DialectConcrete = NSTopics + "/TopicExpression/Concrete"
	DialectFull     = NSTopics + "/TopicExpression/Full"
)

// Paths of a broker's services, equal to Apache CXF's.
const (
	BrokerPath    = "/wsn/NotificationBroker"
	PullPointPath = "/wsn/CreatePullPoint"
)

// Actions of the messages (wsa:Action).
const (
	ActionNotify           = interfaces + "NotificationConsumer/Notify"
	ActionSubscribe        = interfaces + "NotificationProducer/SubscribeRequest"
	ActionRenew            = interfaces + "SubscriptionManager/RenewRequest"
	ActionUnsubscribe      = interfaces + "SubscriptionManager/UnsubscribeRequest"
	ActionCreatePullPoint  = interfaces + "CreatePullPoint/CreatePullPointRequest"
	ActionGetMessages      = interfaces + "PullPoint/GetMessagesRequest"
	ActionDestroyPullPoint = interfaces + "PullPoint/DestroyPullPointRequest"
)

// MaxBytes is the largest message that is read, unless its reader has another limit.
const MaxBytes = 8 << 20
