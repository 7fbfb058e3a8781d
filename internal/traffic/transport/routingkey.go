package transport

import "strings"

// swap of the characters that mean the same in MQTT and in AMQP's topic exchanges: the separator of levels and the wildcard of one level.
// The wildcard of all further levels is # in both.
var swap = strings.NewReplacer("/", ".", ".", "/", "+", "*", "*", "+")

// RoutingKey is a topic, or a filter, as a routing key (a binding key) of an AMQP 0-9-1 topic exchange: /PRT/+/location is .PRT.*.location. It
// is the mapping of RabbitMQ's MQTT plugin, but for dots and asterisks inside of a level, which that one cannot tell from separators and
// wildcards: here they become slashes and pluses, so that no two topics have one key. Topic is its inverse.
func RoutingKey(topic string) string { return swap.Replace(topic) }

// Topic of a routing key.
func Topic(routingKey string) string { return swap.Replace(routingKey) }
