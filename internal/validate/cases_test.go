package validate

import (
	"strings"
	"testing"
)

// sound is an experiment that uses everything; each case breaks one part of it.
const sound = `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata:
  name: sound
  namespace: default
spec:
  duration: 60s
  networks:
  - name: wan
    waveform: baseline
    subnet: 198.18.0.0/24
    links: [{from: veh, to: nor, rate: 9.6kbit}, {from: veh-2, to: veh, delay: 5ms}, {from: mast, to: "*", loss: 2%}]
  - name: lan
    link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}
    subnet: 198.18.1.0/28
  apps:
  - name: hub
    mosquitto: {}
  - name: broker
    mosquitto: {bridges: [{to: hub, topics: [{filter: "NOR/#", direction: in}]}]}
  - name: bft
    instances: 4
    publisher: {protocol: mqtt, to: hub, payload: geojson, period: 2s}
    subscriber: {protocol: mqtt, to: hub}
  - name: chat
    publisher: {protocol: mqtt, to: mast/broker, payload: "bytes:64", period: 500ms}
  - name: sensor
    publisher: {protocol: mqtt-udp, network: lan, payload: nffi, period: 10s}
  - name: own
    image: example.org/own:1
    command: [/own]
    env: [{name: MODE, value: fast}]
  nodes:
  - {name: hq, group: nor, networks: [wan], apps: [hub, bft]}
  - {name: veh, count: 3, platforms: "2-4", networks: [lan, wan], apps: [sensor, own, chat]}
  - {name: mast, nem: 9, platform: "7", networks: [wan, lan], apps: [broker]}
  timeline:
  - {at: 5s, start: [bft, veh/sensor, veh-3/chat, nor/bft]}
  - {at: 60s, stop: [bft]}
  - {at: 30s, set: [{network: wan, from: veh-1, to: nor, link: {loss: 10%}}, {network: lan, silent: true}, {network: wan, to: "*", link: {rate: 1Mbit}}]}
  drain: {max: 30s, quietFor: 5s}
  collect: {captures: [lan, wan/veh-3, wan/nor], captureSnapLengthBytes: 128}
`

// refusal is a case that the API server and `vignette validate` both refuse.
type refusal struct {
	name string
	// edits are pairs of old and new text of sound.
	edits []string
	// path is the field's path, as `vignette validate` names it.
	path string
	// message is a fragment of the refusal.
	message string
}

var refusals = []refusal{
	{"an unknown app in nodes", []string{"apps: [hub, bft]", "apps: [hub, bftt]"}, "spec.nodes[hq].apps", "there is no app bftt"},
	{"an unknown network in nodes", []string{"group: nor, networks: [wan]", "group: nor, networks: [vhf]"}, "spec.nodes[hq].networks", "there is no network vhf"},
	{"an unknown network of a publisher", []string{"network: lan,", "network: vhf,"}, "spec.apps[sensor].publisher.network", "there is no network vhf"},
	{"an unknown network of a subscriber", []string{"  - name: own", "  - name: ear\n    subscriber: {protocol: mqtt-udp, network: uhf}\n  - name: own"}, "spec.apps[ear].subscriber.network", "there is no network uhf"},
	{"a network that the publisher's nodes are not on", []string{"networks: [lan, wan]", "networks: [wan]"}, "spec.apps[sensor].publisher.network", "is not attached to lan"},
	{"MQTT/UDP on a node without networks", []string{"network: lan, payload: nffi", "payload: nffi", "networks: [lan, wan], ", ""}, "spec.apps[sensor].publisher.protocol", "mqtt-udp needs a network"},
	{"a link from an unknown group", []string{"from: veh,", "from: vehs,"}, "spec.networks[wan].links", "there is no group or node vehs"},
	{"a link to an unknown group", []string{"to: nor, rate", "to: deu, rate"}, "spec.networks[wan].links", "there is no group or node deu"},
	{"a link from one node too many", []string{"from: veh-2", "from: veh-4"}, "spec.networks[wan].links", "there is no group or node veh-4"},
	{"a timeline that starts an unknown app", []string{"start: [bft,", "start: [ghost,"}, "spec.timeline[5s].start", "no node runs ghost"},
	{"a timeline that stops an unknown app", []string{"stop: [bft]", "stop: [ghost]"}, "spec.timeline[60s].stop", "no node runs ghost"},
	{"a timeline target on a node that does not run it", []string{"veh-3/chat", "veh-3/bft"}, "spec.timeline[5s].start", "no node runs veh-3/bft"},
	{"a timeline target on an unknown node", []string{"veh-3/chat", "veh-4/chat"}, "spec.timeline[5s].start", "no node runs veh-4/chat"},
	{"a timeline target in an unknown group", []string{"nor/bft", "usa/bft"}, "spec.timeline[5s].start", "no node runs usa/bft"},
	{"a publisher to an unknown broker", []string{"to: mast/broker", "to: mast/brokr"}, "spec.apps[chat].publisher.to", "there is no app brokr"},
	{"a publisher to something that is no broker", []string{"to: mast/broker", "to: sensor"}, "spec.apps[chat].publisher.to", "app sensor is no broker"},
	{"a publisher to a node without that broker", []string{"to: mast/broker", "to: hq/broker"}, "spec.apps[chat].publisher.to", "there is no node hq that runs broker"},
	{"a publisher to a broker that no node runs", []string{"to: mast/broker", "to: spare", "  - name: hub\n", "  - name: spare\n    mosquitto: {}\n  - name: hub\n"}, "spec.apps[chat].publisher.to", "no node runs spare"},
	{"a publisher to a broker that several nodes run", []string{"to: mast/broker", "to: hub", "apps: [broker]", "apps: [hub]"}, "spec.apps[chat].publisher.to", "several nodes run hub"},
	{"a subscriber to an unknown broker", []string{"to: hub, payload: geojson", "to: hb, payload: geojson", "subscriber: {protocol: mqtt, to: hub}", "subscriber: {protocol: mqtt, to: hb}"}, "spec.apps[bft].subscriber.to", "there is no app hb"},
	{"a bridge to an unknown broker", []string{"[{to: hub,", "[{to: hb,"}, "spec.apps[broker].mosquitto.bridges", "there is no broker named hb"},
	{"a bridge to something that is no broker", []string{"[{to: hub,", "[{to: bft,"}, "spec.apps[broker].mosquitto.bridges", "named bft"},
	{"a bridge to a broker that several nodes run", []string{"apps: [sensor, own, chat]", "apps: [sensor, hub, chat, own]", "start: [bft, ", "start: ["}, "spec.apps[broker].mosquitto.bridges", "One that runs hub must be named"},
	{"a bridge to itself", []string{"[{to: hub,", "[{to: broker,"}, "spec.apps[1].mosquitto.bridges", "a broker cannot bridge to itself"},
	{"a bridge to itself by its node", []string{"[{to: hub,", "[{to: mast/broker,"}, "spec.apps[1].mosquitto.bridges", "a broker cannot bridge to itself"},
	{"two brokers that bridge to each other", []string{"    mosquitto: {}", "    mosquitto: {bridges: [{to: broker}]}"}, "spec.apps[broker].mosquitto.bridges", "another broker bridges to broker too"},
	{"two bridges to the same broker", []string{"direction: in}]}", "direction: in}]}, {to: hub}"}, "spec.apps[1].mosquitto.bridges", "two bridges go to the same broker"},
	{"two brokers on a node", []string{"apps: [broker]", "apps: [broker, hub]"}, "spec.nodes[mast].apps", "room for one MQTT broker"},
	{"several brokers in an app", []string{"    mosquitto: {}", "    mosquitto: {}\n    instances: 2"}, "spec.apps[0].instances", "room for one broker"},

	{"a publisher with neither period nor pattern", []string{", period: 500ms}", "}"}, "spec.apps[3].publisher", "needs either period or pattern"},
	{"a publisher with both", []string{", period: 500ms}", ", period: 500ms, pattern: {mgen: 0 ON 1 PERIODIC (1 100)}}", "payload: \"bytes:64\", ", ""}, "spec.apps[3].publisher", "needs either period or pattern"},
	{"a pattern with a payload", []string{", period: 500ms}", ", pattern: {mgen: x}}"}, "spec.apps[3].publisher.payload", "leave out payload"},
	{"a pattern with a phase", []string{"payload: \"bytes:64\", period: 500ms}", "phase: spread, pattern: {mgen: x}}"}, "spec.apps[3].publisher.phase", "phases but connected are for period"},
	{"a pattern from nowhere", []string{"payload: \"bytes:64\", period: 500ms}", "pattern: {}}"}, "spec.apps[3].publisher.pattern", "either mgen or configMap"},
	{"an mgen app from nowhere", []string{"    mosquitto: {}", "    mgen: {}"}, "spec.apps[0].mgen", "either script or configMap"},
	{"an mgen app that is a broker too", []string{"    mosquitto: {}", "    mosquitto: {}\n    mgen: {script: x}"}, "spec.apps[0]", "one kind only"},
	{"an mgen app of several instances", []string{"    mosquitto: {}", "    instances: 2\n    mgen: {script: x}"}, "spec.apps[0].instances", "one instance on a node"},
	{"a push that waits for a connection", []string{"    mosquitto: {}", "    messaging: {transport: coap, push: {to: all, period: 10s, phase: connected}}"}, "spec.apps[0].messaging.push.phase", `supported values: "random", "spread", "aligned"`},
	{"a script by HTTP", []string{"    mosquitto: {}", "    script: {protocol: http, messages: [{at: 5s, from: hq, to: mast}]}"}, "spec.apps[0].script.protocol", "http, coap and soap are transports of a messaging app"},
	{"a script without messages", []string{"    mosquitto: {}", "    script: {protocol: mqtt-udp}"}, "spec.apps[0].script", "either messages or configMap"},
	{"a script without its broker", []string{"    mosquitto: {}", "    script: {protocol: mqtt, messages: [{at: 5s, from: hq, to: mast}]}"}, "spec.apps[0].script.to", "needs to, its broker"},

	{"two networks of one name", []string{"- name: lan", "- name: wan"}, "spec.networks[1]", "name of an earlier entry"},
	{"two apps of one name", []string{"- name: broker", "- name: hub"}, "spec.apps[1]", "name of an earlier entry"},
	{"two nodes of one name", []string{"{name: mast,", "{name: hq,"}, "spec.nodes[2]", "name of an earlier entry"},
	{"a node with the name of a counted one", []string{"{name: mast,", "{name: veh-2,"}, "spec.nodes[veh-2].name", "is also one of the nodes that count makes of veh"},
	{"a group with the name of another group's node", []string{"{name: mast,", "{name: mast, group: hq,"}, "spec.nodes[mast].group", "hq is also the name of a node of another group"},
	{"an app named twice by a node", []string{"[hub, bft]", "[hub, bft, bft]"}, "spec.nodes[0].apps", "named twice"},
	{"a network named twice by a node", []string{"[lan, wan]", "[lan, lan, wan]"}, "spec.nodes[1].networks", "named twice"},
	{"two links between the same groups", []string{"from: veh-2, to: veh,", "from: veh, to: nor,"}, "spec.networks[0].links", "two links go from the same group"},

	{"subnets that overlap", []string{"198.18.1.0/28", "198.18.0.16/28"}, "spec.networks[lan].subnet", "198.18.0.16/28 overlaps the subnet of wan"},
	{"a subnet that is an address", []string{"198.18.0.0/24", "198.18.0.7/24"}, "spec.networks[0].subnet", "must be the base address"},
	{"a subnet that is no CIDR", []string{"198.18.0.0/24", "198.18.0.0"}, "spec.networks[0].subnet", "IPv4 subnet in CIDR form"},
	{"an IPv6 subnet", []string{"198.18.0.0/24", "'fd00:1234::/64'"}, "spec.networks[0].subnet", "IPv4 subnet in CIDR form"},
	{"a multicast subnet", []string{"198.18.0.0/24", "224.1.0.0/24"}, "spec.networks[0].subnet", "ordinary unicast"},
	{"a subnet of two addresses", []string{"198.18.0.0/24", "198.18.0.0/31"}, "spec.networks[0].subnet", "prefix length"},
	{"a subnet too small for its NEM ids", []string{"198.18.1.0/28", "198.18.1.0/29"}, "spec.networks[lan].subnet", "a node has a NEM id above 6"},
	{"a NEM id used twice", []string{"{name: hq,", "{name: hq, nem: 9,"}, "spec.nodes[mast].nem", "another node has this NEM id"},
	{"a NEM id that another node has by its place", []string{"nem: 9", "nem: 3"}, "spec.nodes[mast].nem", "another node has this NEM id"},
	{"more nodes than an experiment has room for", []string{"{name: hq,", "{name: many, count: 997, networks: []}\n  - {name: hq,"}, "spec.nodes", "at most 1000 nodes"},
	{"NEM ids beyond the last", []string{"{name: veh,", "{name: veh, nem: 65533,"}, "spec.nodes[1].nem", "end by 65534"},
	{"a platform used twice", []string{`platform: "7"`, `platform: "3"`}, "spec.nodes[mast].platform", "3 is taken by another node"},
	{"count and platforms that disagree", []string{`"2-4"`, `"2-5"`}, "spec.nodes[1].platforms", "2-5 is not a range of as many platforms as count says"},
	{"platforms without count", []string{"count: 3, ", ""}, "spec.nodes[1].platforms", "platforms needs count"},
	{"platform with count", []string{`platforms: "2-4"`, `platform: "2"`}, "spec.nodes[1].platform", "platform is for one node"},

	{"a time after the duration", []string{"at: 60s", "at: 61s"}, "spec.timeline[61s].at", "61s is after the end of the experiment"},
	{"a start at the end", []string{"at: 5s", "at: 60s"}, "spec.timeline[60s].at", "60s is after the end of the experiment, or starts an app at its end: its duration is 60s"},
	{"starts spread beyond the duration", []string{"at: 5s", "at: 5s, over: 56s"}, "spec.timeline[5s].over", "56s from 5s on ends after the experiment: its duration is 60s"},
	{"a change spread over a time", []string{"at: 30s", "at: 30s, over: 5s"}, "spec.timeline[2].over", "over is for start and stop"},
	{"no time at all", []string{"duration: 60s", "duration: 0s"}, "spec.duration", "above zero"},
	{"a negative duration", []string{"duration: 60s", "duration: -60s"}, "spec.duration", "must be a duration with its unit, not negative"},
	{"a duration without a unit", []string{"duration: 60s", "duration: '60'"}, "spec.duration", "must be a duration with its unit"},
	{"a moment without a unit", []string{"at: 5s", "at: '5'"}, "spec.timeline[0].at", "must be a duration with its unit"},
	{"a period of nothing", []string{"period: 2s", "period: 0s"}, "spec.apps[2].publisher.period", "1ms or more"},
	{"a rate without a unit", []string{"rate: 2Mbit", "rate: '2000000'"}, "spec.networks[1].link.rate", "rate above zero with its unit"},
	{"a rate of nothing", []string{"rate: 2Mbit", "rate: 0kbit"}, "spec.networks[1].link.rate", "rate above zero"},
	{"a negative delay", []string{"delay: 5ms, loss", "delay: -5ms, loss"}, "spec.networks[1].link.delay", "not negative"},
	{"a loss above 100 %", []string{"0.5%", "101%"}, "spec.networks[1].link.loss", "percentage from 0% to 100%"},
	{"a loss without a unit", []string{"0.5%", "'0.5'"}, "spec.networks[1].link.loss", "percentage from 0% to 100%"},
	{"a queue of nothing", []string{"loss: 0.5%", "limit: 0"}, "spec.networks[1].link.limit", "greater than or equal to 1"},
	{"a negative count", []string{"count: 3, platforms: \"2-4\"", "count: -3"}, "spec.nodes[1].count", "greater than or equal to 1"},
	{"a tolerance without a unit", []string{"drain: {max: 30s, quietFor: 5s}", "drain: {max: 30s, quietFor: 5s}\n  tolerances: {median: '1'}"}, "spec.tolerances.median", "percentage from 0% to 100%"},
	{"a tolerated delay below zero", []string{"drain: {max: 30s, quietFor: 5s}", "drain: {max: 30s, quietFor: 5s}\n  tolerances: {delay: -1ms}"}, "spec.tolerances.delay", "must be a duration with its unit, not negative"},
	{"a drain quieter than long", []string{"quietFor: 5s", "quietFor: 31s"}, "spec.drain.quietFor", "must not be longer than max"},

	{"an image without a command", []string{"    command: [/own]\n", ""}, "spec.apps[5].command", "needs its command"},
	{"a command without an image", []string{"    image: example.org/own:1\n", "", "    env: [{name: MODE, value: fast}]\n", ""}, "spec.nodes[veh].apps", "own has a command and no image"},
	{"a virtual machine's settings on a pod", []string{"networks: [wan], apps: [hub, bft]}", "networks: [wan], apps: [hub, bft], vm: {cores: 2}}"}, "spec.nodes[0].vm", "add runtime: vm"},
	{"an unknown runtime", []string{"networks: [wan], apps: [hub, bft]}", "networks: [wan], apps: [hub, bft], runtime: container}"}, "spec.nodes[0].runtime", "supported values: \"pod\", \"vm\""},
	{"a machine of two disks", []string{"networks: [wan], apps: [hub, bft]}", "networks: [wan], apps: [hub, bft], runtime: vm, vm: {image: i, persistentVolumeClaim: p}}"}, "spec.nodes[0].vm.persistentVolumeClaim", "begins from one disk"},
	{"a machine with too little memory", []string{"networks: [wan], apps: [hub, bft]}", "networks: [wan], apps: [hub, bft], runtime: vm, vm: {image: i, memory: 16Mi}}"}, "spec.nodes[0].vm.memory", "must be a size from 64Mi"},
	{"a machine with too little memory for the platform's guest", []string{"networks: [wan], apps: [hub, bft]}", "networks: [wan], apps: [hub, bft], runtime: vm, vm: {memory: 128Mi}}"}, "spec.nodes[0].vm.memory", "needs 256Mi or more"},
	{"a disk on an unknown bus", []string{"networks: [wan], apps: [hub, bft]}", "networks: [wan], apps: [hub, bft], runtime: vm, vm: {diskBus: ide}}"}, "spec.nodes[0].vm.diskBus", "supported values: \"virtio\", \"sata\""},
	{"cloud-init without a disk", []string{"networks: [wan], apps: [hub, bft]}", "networks: [wan], apps: [hub, bft], runtime: vm, vm: {cloudInit: {secret: s}}}"}, "spec.nodes[0].vm.image", "name an image that has"},
	{"apps without an agent", []string{"networks: [wan], apps: [hub, bft]}", "networks: [wan], apps: [hub, bft], runtime: vm, vm: {image: i, agent: false}}"}, "spec.nodes[0].apps", "runs no apps"},
	{"an image on a virtual machine", []string{"networks: [lan, wan], apps: [sensor, own, chat]}", "networks: [lan, wan], apps: [sensor, own, chat], runtime: vm}"}, "spec.nodes[veh].apps", "own brings an image"},
	{"an app of no kind", []string{"    mosquitto: {}", "    instances: 1"}, "spec.apps[0]", "an app needs a kind"},
	{"a file without a path", []string{"    command: [/own]\n", "    command: [/own]\n    files: [{path: etc/app.conf, content: x}]\n"}, "spec.apps[5].files[0].path", "must be the absolute path of a file"},
	{"a file in the platform's folder", []string{"    command: [/own]\n", "    command: [/own]\n    files: [{path: /vignette/log/x, content: x}]\n"}, "spec.apps[5].files[0].path", "must not lie in /vignette"},
	{"a protocol of a publisher beside it", []string{"    publisher: {", "    protocol: mqtt\n    publisher: {"}, "spec.apps[2].protocol", "a publisher or subscriber has its own protocol"},
	{"an app of two kinds", []string{"    image: example.org/own:1", "    mosquitto: {}\n    image: example.org/own:1"}, "spec.apps[5]", "one kind only"},
	{"env of an app of the platform", []string{"    mosquitto: {}", "    mosquitto: {}\n    env: [{name: A, value: b}]"}, "spec.apps[0].env", "app of your own"},
	{"env of the platform", []string{"name: MODE", "name: VIGNETTE_NODE"}, "spec.apps[5].env[0].name", "set by the platform"},
	{"the name of a container of the platform", []string{"- name: own", "- name: agent", "sensor, own,", "sensor, agent,"}, "spec.apps[5].name", "platform's own containers"},
	{"MQTT without a broker", []string{"to: mast/broker, ", ""}, "spec.apps[3].publisher.to", "needs to, its broker"},
	{"MQTT/UDP with a broker", []string{"network: lan, payload", "to: hub, payload"}, "spec.apps[4].publisher.to", "leave out to"},
	{"MQTT/UDP with QoS 1", []string{"network: lan, payload", "qos: 1, network: lan, payload"}, "spec.apps[4].publisher.qos", "the others 0"},
	{"publisher and subscriber of one client at two brokers", []string{"subscriber: {protocol: mqtt, to: hub}", "subscriber: {protocol: mqtt, to: mast/broker}"}, "spec.apps[2]", "are one client"},
	{"a payload too small for its header", []string{"bytes:64", "bytes:31"}, "spec.apps[3].publisher.payload", "N from 32"},
	{"AMQP to a broker of MQTT", []string{"{protocol: mqtt, to: mast/broker", "{protocol: amqp, to: mast/broker"}, "spec.apps[chat].publisher.to", "app broker does not speak amqp"},
	{"QoS -1 over MQTT", []string{"to: mast/broker, payload", "qos: -1, to: mast/broker, payload"}, "spec.apps[3].publisher.qos", "only mqtt-sn has QoS -1"},
	{"retained messages without a broker", []string{"network: lan, payload", "retain: true, network: lan, payload"}, "spec.apps[4].publisher.retain", "for mqtt and mqtt-sn"},
	{"an image larger than a datagram", []string{"payload: nffi", "payload: \"image:65001\""}, "spec.apps[4].publisher.payload", "N up to 65000"},
	{"security of what is no broker", []string{"    subscriber: {protocol: mqtt, to: hub}", "    subscriber: {protocol: mqtt, to: hub}\n    security: {tls: true}"}, "spec.apps[2].security", "for mosquitto, vernemq"},
	{"an unknown payload", []string{"payload: nffi", "payload: xml"}, "spec.apps[4].publisher.payload", "must be geojson, geojson-ids, nffi, nffi-long, gps, image:N"},
	{"a payload too large for a datagram", []string{"payload: nffi", "payload: 'bytes:70000'"}, "spec.apps[4].publisher.payload", "N up to 65000"},
	{"a topic with a wildcard", []string{"period: 500ms", "period: 500ms, topic: 'a/#'"}, "spec.apps[3].publisher.topic", "without # and +"},
	{"a topic with an unknown placeholder", []string{"period: 500ms", "period: 500ms, topic: 'a/{nation}'"}, "spec.apps[3].publisher.topic", "in braces country"},
	{"a wrong topic filter", []string{"subscriber: {protocol: mqtt, to: hub}", "subscriber: {protocol: mqtt, to: hub, topics: ['a/#/b']}"}, "spec.apps[2].subscriber.topics[0]", "MQTT topic filter"},
	{"a user id beyond what Kubernetes takes", []string{"    command: [/own]", "    command: [/own]\n    runAsUser: 2147483648"}, "spec.apps[5].runAsUser", "less than or equal to 2147483647"},
	{"a country in small letters", []string{"period: 500ms", "period: 500ms, country: nor"}, "spec.apps[3].publisher.country", "in capitals"},
	{"an unknown protocol", []string{"protocol: mqtt-udp", "protocol: kafka"}, "spec.apps[4].publisher.protocol", `supported values: "mqtt", "mqtt-sn"`},

	{"a network with neither waveform nor link", []string{"    waveform: baseline\n", ""}, "spec.networks[0]", "needs one of waveform"},
	{"a network with waveform and link", []string{"waveform: baseline", "waveform: baseline\n    link: {}"}, "spec.networks[0]", "needs one of waveform"},
	{"a network with the name of another interface", []string{"- name: lan", "- name: eth0", "network: lan", "network: eth0", "[lan, wan]", "[eth0, wan]", "[wan, lan]", "[wan, eth0]"}, "spec.networks[1].name", "other interfaces of the node"},
	{"a group of the results", []string{"group: nor", "group: cross", "to: nor", "to: cross", "nor/bft", "cross/bft"}, "spec.nodes[0].group", "results have groups of these names"},
	{"a timeline entry without a deed", []string{", stop: [bft]", ""}, "spec.timeline[1]", "needs start, stop or set"},
	{"a change of an unknown network", []string{"{network: lan, silent", "{network: uhf, silent"}, "spec.timeline[30s].set", "there is no network uhf"},
	{"a change of a link from an unknown group", []string{"from: veh-1,", "from: veh-4,"}, "spec.timeline[30s].set", "there is no group or node veh-4 to go from"},
	{"a change of a link to an unknown node", []string{"to: nor, link", "to: hq-2, link"}, "spec.timeline[30s].set", "there is no group or node hq-2 to go to"},
	{"a change after the duration", []string{"at: 30s", "at: 3m"}, "spec.timeline[3m].at", "3m is after the end"},
	{"a change of nothing", []string{"link: {loss: 10%}", "link: {}"}, "spec.timeline[2].set[0].link", "at least 1 propert"},
	{"a change without a deed", []string{", link: {loss: 10%}", ""}, "spec.timeline[2].set[0]", "needs link, silent, radio, schedule or jammer"},
	{"a change of two models of loss", []string{"link: {loss: 10%}", "link: {loss: 10%, gilbertElliott: {goodToBad: 1%, badToGood: 9%}}"}, "spec.timeline[2].set[0].link.loss", "two models of the same thing"},
	{"a link silenced alone", []string{"from: veh-1, to: nor, link: {loss: 10%}", "from: veh-1, silent: true"}, "spec.timeline[2].set[0].silent", "whole network"},
	{"two models of loss", []string{"delay: 5ms, loss: 0.5%", "delay: 5ms, loss: 0.5%, gilbertElliott: {goodToBad: 1%, badToGood: 9%}"}, "spec.networks[1].link.loss", "two models of the same thing"},
	{"a network with two radio models", []string{"link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}", "rfpipe: {}\n    tdma: {}"}, "spec.networks[1]", "needs one of waveform"},
	{"radios of an unknown group", []string{"    waveform: baseline\n", "    waveform: baseline\n    radios: [{nodes: [veh, deu], transmitPower: 5W}]\n"}, "spec.networks[wan].radios", "there is no group or node in veh, deu"},
	{"radios of the link model", []string{"link: {rate: 2Mbit", "radios: [{nodes: [veh], transmitPower: 5W}]\n    link: {rate: 2Mbit"}, "spec.networks[1].radios", "knows no transmit power"},
	{"a static route over an unknown node", []string{"    waveform: baseline\n", "    waveform: baseline\n    routing: {protocol: static, routes: [{to: mast, via: ghost}]}\n"}, "spec.networks[wan].routing.routes", "there is no node ghost to go via"},
	{"a static route to an unknown node", []string{"    waveform: baseline\n", "    waveform: baseline\n    routing: {protocol: static, routes: [{to: veh-4, via: hq}]}\n"}, "spec.networks[wan].routing.routes", "there is no node veh-4 to go to"},
	{"routes of a protocol that finds its own", []string{"    waveform: baseline\n", "    waveform: baseline\n    routing: {protocol: olsrv2, routes: [{to: mast, via: hq}]}\n"}, "spec.networks[0].routing.routes", "protocol static"},
	{"EMANE for a link", []string{"link: {rate: 2Mbit", "engine: emane\n    link: {rate: 2Mbit"}, "spec.networks[1].engine", "radiod's own"},
	{"EMANE for half duplex RF pipe", []string{"link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}", "engine: emane\n    rfpipe: {halfDuplex: true}"}, "spec.networks[1].engine", "full duplex"},
	{"a platform that stands still", []string{"platform: \"7\",", "platform: \"7\", position: {latitude: \"58\", longitude: \"8\"},"}, "spec.nodes[2].position", "leave out one of the two"},
	{"a change of link and radio", []string{"link: {loss: 10%}", "link: {loss: 10%}, radio: {transmit: false}"}, "spec.timeline[2].set[0].link", "no network takes both"},
	{"a jammer to some nodes", []string{"to: nor, link: {loss: 10%}", "jammer: {name: noise, silent: true}"}, "spec.timeline[2].set[0].from", "leave out from"},
	{"a jammer without power", []string{"from: veh-1, to: nor, link: {loss: 10%}", "jammer: {name: noise, pathloss: 90dB}"}, "spec.timeline[2].set[0].jammer.power", "needs power"},
	{"a jammer that is nowhere", []string{"from: veh-1, to: nor, link: {loss: 10%}", "jammer: {name: noise, power: 5W}"}, "spec.timeline[2].set[0].jammer.position", "its position or its pathloss"},
	{"a capture of an unknown network", []string{"[lan, wan/veh-3", "[uhf, wan/veh-3"}, "spec.collect.captures", "there is no network uhf"},
	{"a capture of a node of an unknown network", []string{"wan/veh-3", "uhf/veh-3"}, "spec.collect.captures", "there is no network uhf"},
	{"a capture of an unknown node", []string{"wan/veh-3", "wan/veh-4"}, "spec.collect.captures", "there is no group or node veh-4"},
	{"a capture of a path", []string{"wan/veh-3", "wan/veh/3"}, "spec.collect.captures", "there is no group or node veh/3"},
	{"a capture filter without captures", []string{"captures: [lan, wan/veh-3, wan/nor], captureSnapLengthBytes: 128", "captureFilter: udp"}, "spec.collect", "name the networks to capture"},
	{"a base of an unknown group", []string{"    waveform: baseline\n", "    waveform: baseline\n    base: [mast, deu]\n"}, "spec.networks[wan].base", "there is no group or node deu"},
	{"a base beside a link in place", []string{"link: {rate: 2Mbit", "base: [mast]\n    link: {rate: 2Mbit"}, "spec.networks[1].base", "waveform with a downlink"},
	{"a HELLO that ends before the next one", []string{"    link: {rate: 2Mbit", "    routing: {protocol: olsrv2, hello: 2s, helloValidity: 1s}\n    link: {rate: 2Mbit"}, "spec.networks[1].routing.helloValidity", "must be from hello"},
	{"no time between HELLOs", []string{"    link: {rate: 2Mbit", "    routing: {protocol: olsrv2, hello: 0s}\n    link: {rate: 2Mbit"}, "spec.networks[1].routing.hello", "10ms"},
	{"a HELLO that holds for longer than OLSRv1 can say", []string{"    link: {rate: 2Mbit", "    routing: {protocol: olsrv1, hello: 1323s}\n    link: {rate: 2Mbit"}, "spec.networks[1].routing.hello", "to 1322s for olsrv1"},
	{"a TC that holds for longer than OLSRv1 can say", []string{"    link: {rate: 2Mbit", "    routing: {protocol: olsrv1, tc: 1h, tcValidity: 3969s}\n    link: {rate: 2Mbit"}, "spec.networks[1].routing.tcValidity", "to 3968s for olsrv1"},
	{"a HELLO that babeld does not take", []string{"    link: {rate: 2Mbit", "    routing: {protocol: babel, hello: 1h}\n    link: {rate: 2Mbit"}, "spec.networks[1].routing.hello", "655s for babel"},
	{"a TC that ends before the next one", []string{"    link: {rate: 2Mbit", "    routing: {protocol: olsrv1, tcValidity: 4s}\n    link: {rate: 2Mbit"}, "spec.networks[1].routing.tcValidity", "must be from tc"},
	{"no power", []string{"    link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}\n", "    rfpipe: {phy: {transmitPower: 0W}}\n"}, "spec.networks[1].rfpipe.phy.transmitPower", "above 0W"},
	{"no power from a moment on", []string{"{network: lan, silent: true}", "{network: lan, radio: {transmitPower: 0.00mW}}"}, "spec.timeline[2].set[1].radio.transmitPower", "above 0W"},
	{"no frequency from a moment on", []string{"{network: lan, silent: true}", "{network: lan, radio: {frequency: 0Hz}}"}, "spec.timeline[2].set[1].radio.frequency", "above zero"},
	{"a jammer of no bandwidth", []string{"{network: lan, silent: true}", "{network: lan, jammer: {name: j, power: 1W, pathloss: 90dB, bandwidth: 0kHz}}"}, "spec.timeline[2].set[1].jammer.bandwidth", "above zero"},
	{"a gain in dB", []string{"    link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}\n", "    rfpipe: {phy: {antennaGain: 3dB}}\n"}, "spec.networks[1].rfpipe.phy.antennaGain", "such as 2dBi"},
	{"a loss of one letter", []string{"0.5%", "'0'"}, "spec.networks[1].link.loss", "percentage from 0% to 100%"},
	{"a name too long for pods", []string{"name: sound", "name: " + strings.Repeat("a", 41)}, "metadata.name", "at most 40"},
	{"a name with a dot", []string{"name: sound", "name: so.und"}, "metadata.name", "letters, digits and hyphens"},
}

// broken returns sound with the edits of a case.
func (r refusal) broken(t *testing.T) string { return r.breaking(t, sound) }

// breaking makes the edits of a case in a text.
func (r refusal) breaking(t *testing.T, text string) string {
	t.Helper()
	for i := 0; i < len(r.edits); i += 2 {
		if !strings.Contains(text, r.edits[i]) {
			t.Fatalf("the sound text has no %q to edit", r.edits[i])
		}
		text = strings.Replace(text, r.edits[i], r.edits[i+1], 1)
	}
	return text
}

// accepted are edits of sound that both accept.
var accepted = map[string][]string{
	"a live cluster":                     {"  duration: 60s\n", ""},
	"a base of a node and of a group":    {"    waveform: baseline\n", "    waveform: lte\n    base: [mast, veh-2, nor]\n"},
	"a capture of everything everywhere": {"captures: [lan, wan/veh-3, wan/nor], captureSnapLengthBytes: 128", "captures: [lan, wan], captureFilter: udp port 698, captureLimit: 1Gi"},
}

// soundChange and soundCapture are objects for a running experiment.
const (
	soundChange = `apiVersion: vignette.dev/v1alpha1
kind: LiveChange
metadata: {name: burst, namespace: default}
spec:
  experiment: sound
  changes:
  - {network: wan, from: veh, to: "*", link: {loss: 50%, delay: 1s}}
  - {network: lan, silent: true}
`
	soundCapture = `apiVersion: vignette.dev/v1alpha1
kind: Capture
metadata: {name: film, namespace: default}
spec: {experiment: sound, network: wan, nodes: [veh, hq], filter: udp port 698, snapLengthBytes: 64, limit: 1Mi, duration: 5m}
`
)

// refusalsBeside are of LiveChanges and Captures; text is the sound one.
var refusalsBeside = []struct {
	text string
	refusal
}{
	{soundChange, refusal{"a change of no experiment", []string{"  experiment: sound\n", ""}, "spec.experiment", "equired"}},
	{soundChange, refusal{"a change without changes", []string{"  changes:\n", "  changes: []\n", "  - {network: wan, from: veh, to: \"*\", link: {loss: 50%, delay: 1s}}\n", "", "  - {network: lan, silent: true}\n", ""}, "spec.changes", "at least 1"}},
	{soundChange, refusal{"a change by hand of nothing", []string{", silent: true", ""}, "spec.changes[1]", "needs link, silent, radio, schedule or jammer"}},
	{soundChange, refusal{"a link silenced by hand", []string{"lan, silent", "lan, to: veh, silent"}, "spec.changes[1].silent", "whole network"}},
	{soundChange, refusal{"a loss by hand without a unit", []string{"50%", "'50'"}, "spec.changes[0].link.loss", "percentage"}},
	{soundCapture, refusal{"a capture of no network", []string{"network: wan, ", ""}, "spec.network", "equired"}},
	{soundCapture, refusal{"a capture by the name of the experiment's own", []string{"name: film", "name: run"}, "", "run is the name of the experiment's own capture"}},
	{soundCapture, refusal{"a capture of no header", []string{"snapLengthBytes: 64", "snapLengthBytes: 5"}, "spec.snapLengthBytes", "greater than or equal to 14"}},
	{soundCapture, refusal{"a capture for no time", []string{"duration: 5m", "duration: '5'"}, "spec.duration", "with its unit"}},
}
