"""Names of protocols, by EtherType, by IP's number and by port (IANA's registries), with the ports that the platform's parts use."""

import numpy as np

from ..requests import services
from ..run import Run

OTHER = "other"
# Routing protocols; radiod's own have the names of spec.networks[].routing.protocol.
ROUTING = frozenset({"olsrv1", "olsrv2", "babel", "ospf", "rip", "bgp", "eigrp", "batman", "pim"})

ETHERTYPES = {0x0806: "arp", 0x8035: "arp", 0x4305: "batman"}
# Messages of the internet layer itself (RFC 792, RFC 4443, RFC 3376, RFC 7761) count for the layer ip.
INTERNET = {1: "icmp", 2: "igmp", 58: "icmpv6", 103: "pim"}
# Transport protocols with their shortest header in bytes.
TRANSPORT = {6: ("tcp", 20), 17: ("udp", 8), 33: ("dccp", 12), 113: ("pgm", 16), 132: ("sctp", 12)}
# Protocols directly in IP: routing protocols. RFC 5498 assigns 138 and UDP port 269 to RFC 5444 packets.
IP = {88: "eigrp", 89: "ospf", 138: "olsrv2"}

TCP_PORTS = {
    1883: "mqtt", 8883: "mqtt",
    5672: "amqp", 5671: "amqp",
    61613: "stomp", 61614: "stomp",
    5222: "xmpp", 5269: "xmpp",
    5555: "zeromq", 5556: "zeromq",
    80: "http", 8080: "http", 443: "https", 8443: "https",
    5683: "coap", 5684: "coap",
    179: "bgp",
    53: "dns",
    22: "ssh",
}  # fmt: skip
UDP_PORTS = {
    1883: "mqtt-udp", 1884: "mqtt-sn", 10000: "mqtt-sn",
    # PGM in UDP as ZeroMQ's brokers and publishers have it (docs/reference/protocols.md#zeromq).
    5556: "pgm", **dict.fromkeys(range(5601, 5701), "pgm"),
    5683: "coap", 5684: "coap",
    3702: "soap-udp",
    269: "olsrv2", 698: "olsrv1", 6696: "babel", 520: "rip", 521: "rip",
    53: "dns", 5353: "mdns", 67: "dhcp", 68: "dhcp", 546: "dhcp", 547: "dhcp", 123: "ntp",
}  # fmt: skip

# All names; a protocol's code is its index. Code 0 means none.
NAMES = sorted(
    {
        OTHER,
        *ETHERTYPES.values(),
        *INTERNET.values(),
        *IP.values(),
        *TCP_PORTS.values(),
        *UDP_PORTS.values(),
        *(name for name, _ in TRANSPORT.values()),
    }
)
CODES = {name: code for code, name in enumerate(NAMES)}


def _codes(size: int, names: dict[int, str], default: str) -> np.ndarray:
    table = np.full(size, CODES[default], dtype=np.uint8)
    for number, name in names.items():
        table[number] = CODES[name]
    return table


# Codes by IP's number, and by port.
BY_NUMBER = _codes(256, INTERNET | IP | {number: name for number, (name, _) in TRANSPORT.items()}, OTHER)
HEADER_BYTES = np.zeros(256, dtype=np.int64)
for _number, (_, _length) in TRANSPORT.items():
    HEADER_BYTES[_number] = _length
IS_INTERNET = np.zeros(256, dtype=bool)
IS_INTERNET[list(INTERNET)] = True


class Ports:
    """Codes of protocols by port of TCP (6) and UDP (17), some of them other than usual."""

    def __init__(self, tcp: dict[int, str] | None = None, udp: dict[int, str] | None = None):
        self._tables = {6: _codes(1 << 16, TCP_PORTS | (tcp or {}), "tcp"), 17: _codes(1 << 16, UDP_PORTS | (udp or {}), "udp")}

    def codes(self, number: int, source: np.ndarray, destination: np.ndarray) -> np.ndarray:
        """Codes of the protocols in TCP (6) or UDP (17): by destination port, else by source port, else the transport."""
        table = self._tables[number]
        return np.where(table[destination] != BY_NUMBER[number], table[destination], table[source])


USUAL = Ports()
# Protocols of messaging services by their transport: the number of IP, and the name.
_SERVICES = {"http": (6, "http"), "soap": (6, "http"), "coap": (17, "coap"), "coap-tcp": (6, "coap"), "soap-udp": (17, "soap-udp")}


def planned(run: Run) -> Ports:
    """The usual ports, and those that the spec gives messaging services."""
    found: dict[int, dict[int, str]] = {6: {}, 17: {}}
    for settings in services(run).values():
        if settings.get("port") and settings.get("transport") in _SERVICES:
            number, name = _SERVICES[settings["transport"]]
            found[number][settings["port"]] = name
    return Ports(found[6], found[17])
