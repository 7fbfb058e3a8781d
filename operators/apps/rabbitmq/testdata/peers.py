"""Clients that nobody here wrote: pika (AMQP 0-9-1) and stomp.py (STOMP 1.2), both from Debian.

usage: peers.py AMQP_PORT STOMP_PORT

Prints a line of JSON for each message that either hears: [client, key, payload]. Reads lines of JSON [client, key, payload] and has the
client publish them. Keys are routing keys of AMQP; a key of STOMP comes from and goes into a destination /topic/KEY.
"""
import json
import sys
import threading
import urllib.parse

import pika
import stomp

amqp_port, stomp_port = int(sys.argv[1]), int(sys.argv[2])
printing = threading.Lock()


def heard(client, key, payload):
    with printing:
        print(json.dumps([client, key, payload]), flush=True)


class Listener(stomp.ConnectionListener):
    def on_message(self, frame):
        heard("stomp.py", urllib.parse.unquote(frame.headers["destination"].removeprefix("/topic/")), frame.body)


def hear_amqp():
    channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", amqp_port)).channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "amq.topic", "#")
    channel.basic_consume(queue, lambda _c, d, _p, body: heard("pika", d.routing_key, body.decode()), auto_ack=True)
    channel.start_consuming()


threading.Thread(target=hear_amqp, daemon=True).start()
stomp_client = stomp.Connection12([("127.0.0.1", stomp_port)], vhost="/")
stomp_client.set_listener("", Listener())
stomp_client.connect(wait=True)
stomp_client.subscribe("/topic/#", id="1", ack="auto")
publishing = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", amqp_port)).channel()

for line in sys.stdin:
    client, key, payload = json.loads(line)
    if client == "pika":
        publishing.basic_publish("amq.topic", key, payload.encode())
    else:
        stomp_client.send("/topic/" + key.replace("/", "%2F"), payload)
