"""A second XMPP client, on slixmpp: other_client.py HOST PORT CA|- USER PASSWORD TOPICS.

It subscribes to the nodes in TOPICS (with commas between), says "ready", publishes each line of its input, NODE TEXT, to a node, and prints what
it hears as NODE TEXT. A text is the content of <message xmlns="urn:vignette:payload">; base64 is decoded and printed in hexadecimal.
"""

import asyncio
import base64
import sys
from xml.etree import ElementTree

import slixmpp

PAYLOAD = "{urn:vignette:payload}message"
SERVICE = "pubsub.vignette"


class Client(slixmpp.ClientXMPP):
    def __init__(self, ca, user, password, topics):
        super().__init__(f"{user}@vignette/other", password)
        self.topics = topics
        self.ca_certs = None if ca == "-" else ca
        self.register_plugin("xep_0060")
        self.add_event_handler("session_start", self.begin)
        self.add_event_handler("pubsub_publish", self.heard)

    async def begin(self, _):
        for topic in self.topics:
            await self["xep_0060"].subscribe(SERVICE, topic, subscribee=self.boundjid.full)
        print("ready", flush=True)
        while line := await asyncio.get_event_loop().run_in_executor(None, sys.stdin.readline):
            node, text = line.rstrip("\n").split(" ", 1)
            element = ElementTree.Element(PAYLOAD)
            element.text = text
            await self["xep_0060"].publish(SERVICE, node, payload=element)
            print("published", node, flush=True)
        self.disconnect()

    def heard(self, message):
        for items in message.xml.iter("{http://jabber.org/protocol/pubsub#event}items"):
            for element in items.iter(PAYLOAD):
                text = element.text or ""
                if element.get("encoding") == "base64":
                    text = base64.b64decode(text).hex()
                print(items.get("node"), text, flush=True)


def main():
    host, port, ca, user, password, topics = sys.argv[1:]
    client = Client(ca, user, password, [t for t in topics.split(",") if t])
    client.enable_starttls = ca != "-"
    client.connect((host, int(port)), disable_starttls=ca == "-", force_starttls=ca != "-")
    client.process()


if __name__ == "__main__":
    main()
