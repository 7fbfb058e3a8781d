package transport

import "strings"

// swap exchanges the equivalent characters of MQTT and AMQP's topic exchanges: the separator of levels and the wildcard of one level.
// The wildcard of all further levels is # in both.
var swap = strings.NewReplacer("/", ".", ".", "/", "+", "*", "*", "+")

// RoutingKey converts a topic or filter to a routing or binding key of an AMQP 0-9-1 topic exchange: /PRT/+/location is .PRT.*.location. It
// is the mapping of RabbitMQ's MQTT plugin, except for dots and asterisks inside a level, which the plugin confuses with separators and
// wildcards. Here they become slashes and pluses, so that topics have distinct keys. Topic is the inverse.
func RoutingKey(topic string) string { return swap.Replace(topic) }

// Topic returns the topic of a routing key.
func Topic(routingKey string) string { return swap.Replace(routingKey) }
