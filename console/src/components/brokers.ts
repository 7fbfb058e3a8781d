/** brokers are the kinds of apps of which one stands in for another. */
export const brokers = ["mosquitto", "vernemq", "rabbitmq", "prosody", "wsnBroker", "zeromqBroker"] as const;

/** mqttBrokers are those that speak MQTT. */
export const mqttBrokers = ["mosquitto", "vernemq", "rabbitmq"] as const;

/** protocolsOf a kind of broker; the first one is that of clients that are added. */
export const protocolsOf: Readonly<Record<string, readonly string[]>> = {
  mosquitto: ["mqtt"],
  vernemq: ["mqtt"],
  rabbitmq: ["mqtt", "amqp", "stomp"],
  prosody: ["xmpp"],
  wsnBroker: ["ws-notification"],
  zeromqBroker: ["zeromq"],
};

/** forwarders are all kinds of apps that pass messages on. */
export const forwarders = [...brokers, "mqttsnGateway", "mediator"] as const;
