/** brokers are the kinds of apps of which one stands in for another. */
export const brokers = ["mosquitto", "vernemq", "rabbitmq", "prosody", "wsnBroker", "zeromqBroker"] as const;

/** mqttBrokers are those that speak MQTT. */
export const mqttBrokers = ["mosquitto", "vernemq", "rabbitmq"] as const;

/** otherProtocols are those of the brokers that speak no MQTT. */
export const otherProtocols: Readonly<Record<string, string>> = { prosody: "xmpp", wsnBroker: "ws-notification", zeromqBroker: "zeromq" };

/** forwarders are all kinds of apps that pass messages on. */
export const forwarders = [...brokers, "mqttsnGateway", "mediator"] as const;
