"""What the columns of every table mean: the text of docs/reference/analysis-api.md, which a test holds against the tables themselves."""

from . import summary

# Columns that several tables have.
_PUBLISHER = {"publisher": "who publishes: the instance's name"}
_PAIR = _PUBLISHER | {"subscriber": "who subscribes: the instance's name"}
_QUANTILES = {f"{q}Seconds": f"{name}, s; null where count is 0" for q, name in summary.NAMES.items()}
_NODE = {"network": "name of the network", "node": "name of the node that sent"}

# By table: what a row is, and the meaning, unit and null of each column.
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "messages": (
        "a message that was sent, in order of time",
        {
            "message": "its number in this table, from 0",
            "id": "its identifier; unique for its publisher",
            "topic": "its topic: of its record, or else the planned one; null where neither is known",
            "triggered": "when its sending was triggered, Unix ns; null where the log does not say",
            "bytes": "its length at the application; null where the log does not say",
            "ambiguous": "another instance sent the same id on the same topic: its deliveries are not counted",
            "publisher": "number of the instance that sent it, in `run.instances`",
            "sent": "when it was handed to the socket or client library, Unix ns",
        },
    ),
    "deliveries": (
        "an expected delivery: a message and an instance that was to receive it, in order of both",
        {
            "message": "number of the message in `messages`",
            "publisher": "number of the instance that sent it, in `run.instances`",
            "subscriber": "number of the instance that was to receive it",
            "sent": "when it was sent, Unix ns",
            "received": "when it came first, Unix ns; null: lost",
            "processed": "when it was processed first, Unix ns; null where it was lost or the log does not say",
            "duplicates": "how often it came again",
            "radio": "publisher and subscriber are on different nodes",
            "local": "it never left a node, and so met no radio",
            "cross": "publisher and subscriber are on nodes of different groups",
        },
    ),
    "requests": (
        "a request, in order of time; those that were triggered and never sent come last",
        {
            "message": "number of the message in `messages`; null where it was never sent",
            "publisher": "number of the instance that sent it, in `run.instances`",
            "subscriber": "number of the instance that was to answer; null where that is not exactly one",
            "id": "its identifier; unique for its publisher",
            "topic": "its topic",
            "triggered": "when its sending was triggered, Unix ns; null where the log does not say",
            "sent": "when it was handed to the socket or library, Unix ns; null where it never was",
            "receipt": "when the response came, Unix ns; null where it failed or was outstanding at the end of the drain",
            "failed": "when it failed, Unix ns; null where it did not",
            "reason": "why it failed, as the message log has it, or other; inFlightAtEnd where it was outstanding; null with a receipt",
            "retransmissions": "how often the protocol sent it, or a block of it, again",
            "bytes": "its length at the application; null where the log does not say",
            "receiptBytes": "length of the response; null where there is none, or it is empty",
            "radio": "sender and receiver are on different nodes",
            "local": "it never left a node, and so met no radio",
            "cross": "sender and receiver are on nodes of different groups",
        },
    ),
    "stages": (
        "a stage of the way from triggered to processed, in a scope",
        {
            "scope": "all, radio, local, cross, group, publisher or subscriber",
            "name": "of the group or instance; null for all, radio, local and cross",
            "stage": "triggeredToSent, sentToReceived, receivedToProcessed or triggeredToProcessed",
            "count": "messages or deliveries that have both times",
            **_QUANTILES,
        },
    ),
    "sequences": (
        "a loss period: messages of a publisher lost in a row at a subscriber",
        {
            **_PAIR,
            "firstID": "id of the first lost message",
            "lastID": "id of the last one",
            "messages": "how many were lost",
            "fromSeconds": "when the first one was sent, s after T0",
            "toSeconds": "when the last one was sent, s after T0",
            "outageSeconds": "from the sending of the first lost message to that of the next one that arrived, s; null where none did",
            "longest": "it is the longest one of its pair; the earliest of equals",
        },
    ),
    "order": (
        "a pair of publisher and subscriber: reordering by RFC 4737",
        {
            **_PAIR,
            "received": "messages received",
            "reordered": "of these, received after a message that was sent later",
            "reorderedPercent": "share of these in what was received, %; null where nothing was",
            "extentMean": "mean number of messages between the first one that overtook it and itself; null where none was reordered",
            "extentMax": "greatest such number; null as before",
            "lateMeanSeconds": "mean time for which that first one had been there, s; null as before",
            "lateMaxSeconds": "greatest such time, s; null as before",
            "duplicates": "messages that came again",
        },
    ),
    "age": (
        "a pair of publisher and subscriber: age of information",
        {
            **_PAIR,
            "fromSeconds": "when the first message was received, s after T0; null where none was",
            "toSeconds": "end of the measuring window, s after T0; null as before",
            "updates": "messages received that were fresher than all before",
            "meanSeconds": "mean age over that time, s; null where it has no length",
            "peakMeanSeconds": "mean of the ages right before each update but the first, s; null where there was but one",
            "maxSeconds": "greatest age, s; null where nothing was received",
        },
    ),
    "bursts": (
        "a publisher that waits for its connection, and a subscriber of its messages",
        {
            **_PAIR,
            "publisherProtocol": "protocol of the publisher",
            "subscriberProtocol": "protocol of the subscriber",
            "messages": "messages that the subscriber expects",
            "received": "of these, received",
            "connectedSeconds": "from the publisher's start to its first message, s",
            "seconds": "from the publisher's start to the last message received, s; null where one is missing",
        },
    ),
    "positions": (
        "a change of a node's position",
        {
            "ts": "when, Unix ns",
            "node": "name of the node, or of the instance where that reports a platform of its own",
            "latitudeDegrees": "WGS 84, north is positive",
            "longitudeDegrees": "WGS 84, east is positive",
            "altitudeMetres": "above the ellipsoid or ground, as the scenario has it",
        },
    ),
    "links": (
        "a second in which a directed link had news",
        {
            "ts": "when, Unix ns",
            "network": "name of the network",
            "source": "name of the node that sends",
            "receiver": "name of the node that hears",
            "sinrDB": "signal to interference and noise ratio of the last transmission, dB; null where there was none to measure",
            "pathlossDB": "pathloss, dB; null where the model does not tell",
            "heard": "transmissions heard since the attachment",
            "belowSensitivity": "transmissions missed since the attachment: too weak",
            "lowSINR": "missed for a low SINR, by the curve of packet completion",
            "interfered": "missed as others sent at the same time",
            "halfDuplex": "missed as the receiver sent itself",
            "notListening": "missed as the receiver was tuned elsewhere or off",
        },
    ),
    "hops": (
        "a change of the hop count of a node's route to another",
        {
            "ts": "when, Unix ns",
            "network": "name of the network of the destination's address",
            "source": "name of the node that has the route",
            "destination": "name of the node that it leads to",
            "hops": "hop count; null: there is no route any more",
        },
    ),
    "hop_histogram": (
        "a hop count in a second: how many pairs of nodes had it",
        {
            "network": "name of the network",
            "second": "whole seconds after T0; values are those at its end",
            "hops": "hop count; null: no route",
            "pairs": "ordered pairs of nodes",
        },
    ),
    "reports": (
        "a position that a message reports as its sender's",
        {
            "ts": "time it was made, Unix nanoseconds",
            "publisher": "name of the instance",
            "node": "its node",
            "id": "id of the message",
            "latitudeDegrees": "WGS 84",
            "longitudeDegrees": "WGS 84",
            "altitudeMetres": "WGS 84; null where it was not logged",
            "receivers": "subscribers on other nodes that received it",
            "received": "when the first of them did, Unix nanoseconds; null if none did",
        },
    ),
    "picture": (
        "a subscriber and a node that reports its position, sampled at whole seconds",
        {
            "subscriber": "name of the instance",
            "node": "name of the node that reports its position, or of the instance where that reports a platform of its own",
            "samples": "from the node's first report to the end of the measuring window",
            "knownPercent": "share of the samples in which the subscriber had a position",
            "errorMedianMetres": "horizontal distance of the freshest received position from the true one",
            "errorMeanMetres": "as before",
            "errorP95Metres": "as before",
            "errorMaxMetres": "as before",
            "ageMedianSeconds": "time since that position was made",
            "ageMeanSeconds": "as before",
            "ageP95Seconds": "as before",
            "ageMaxSeconds": "as before",
        },
    ),
    "picture_times": (
        "a second after T0: all pairs of a subscriber and a node that reports its position",
        {
            "second": "seconds after T0",
            "known": "pairs in which the subscriber had a position",
            "pairs": "pairs whose node had reported",
            "errorMedianMetres": "over the known pairs; null without any",
            "errorP95Metres": "as before",
            "ageMedianSeconds": "as before",
            "ageP95Seconds": "as before",
        },
    ),
    "volume": (
        "what a node sent in a second, by layer and protocol; each transmission once, at its sender",
        {
            **_NODE,
            "second": "whole seconds after T0",
            "layer": "ethernet, ip, transport or application: what that layer adds, so that the layers of a frame add up to it",
            "protocol": "the highest protocol that was recognised, such as mqtt, or other",
            "routing": "it is a routing protocol's",
            "frames": "frames that have something of this layer",
            "bytes": "bytes of this layer, without FCS",
        },
    ),
    "tcp": (
        "a direction of a TCP connection, by Wireshark's definitions",
        {
            **_NODE,
            "flow": "source:port > destination:port",
            "retransmissions": "retransmitted segments; null where the capture that could tell is missing",
            "spurious": "of data that had been acknowledged; null as before",
            "duplicateAcks": "duplicate acknowledgements; null as before",
            "frames": "frames in the measuring window",
            "bytes": "bytes of these, without FCS",
        },
    ),
    "packets": (
        "an application size: how many frames a node sent with it",
        {
            **_NODE,
            "protocol": "as in volume",
            "applicationBytes": "bytes above the transport layer",
            "frames": "how many frames",
        },
    ),
}
