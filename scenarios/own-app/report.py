"""An app of one's own in Python: sends positions by UDP broadcast, or receives them, and logs message events.

    report.py send ADDRESS:PORT PERIOD_SECONDS
    report.py receive PORT
"""

import json
import os
import signal
import socket
import sys
import threading
import time

INSTANCE = os.environ["VIGNETTE_INSTANCE"]  # such as unit-1/reporter
# Without VIGNETTE_MESSAGE_LOG (messageLog: Stdout) the events go to standard output.
LOG = open(os.environ["VIGNETTE_MESSAGE_LOG"], "a") if "VIGNETTE_MESSAGE_LOG" in os.environ else sys.stdout


def log(status, ts, message, size):
    """Append one event: one write of one whole line, flushed, so that a kill loses at most the last one."""
    event = {"ts": ts, "instance": INSTANCE, "status": status, "id": message["id"], "topic": message["topic"], "bytes": size}
    LOG.write(json.dumps(event) + "\n")
    LOG.flush()


def send(address, port, period):
    """Send a message every period until SIGTERM, which is how the timeline stops an app."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    due, number = time.monotonic(), 0
    while not stopped.wait(max(0, due - time.monotonic())):
        due, number = due + period, number + 1
        # The id is unique in the experiment, and the receiver finds id and topic in the message.
        message = {"id": f"{INSTANCE}-{number}", "topic": f"own/{INSTANCE}", "text": "57.1 N 9.9 E"}
        data = json.dumps(message).encode()
        ts = time.time_ns()  # before the call, as the receiver may have the message before it returns
        out.sendto(data, (address, port))
        log("sent", ts, message, len(data))


def receive(port):
    """Receive until SIGTERM."""
    inbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    inbox.bind(("", port))
    print("listening on port", port, flush=True)  # other output is welcome, too
    while True:
        data = inbox.recv(65535)
        ts = time.time_ns()  # at once
        log("received", ts, json.loads(data), len(data))


if sys.argv[1] == "send":
    host, _, number = sys.argv[2].rpartition(":")
    send(host, int(number), float(sys.argv[3]))
else:
    receive(int(sys.argv[2]))
