"""An app of one's own that asks the node's GPS where it is, as of any gpsd, and tells others by UDP broadcast.

gps.py send ADDRESS:PORT PERIOD_SECONDS
gps.py receive PORT
"""

import json
import os
import socket
import sys
import time

INSTANCE = os.environ["VIGNETTE_INSTANCE"]  # such as veh-1/tracker


def log(status, ts, message, **more):
    """Print one message event (messageLog: Stdout)."""
    event = {
        "ts": ts,
        "instance": INSTANCE,
        "status": status,
        "id": message["id"],
        "topic": message["topic"],
    } | more
    print(json.dumps(event), flush=True)


def position():
    """The node's position of now: latitude, longitude, altitude; None without a fix."""
    with socket.create_connection(("127.0.0.1", 2947), timeout=5) as gps:
        gps.sendall(b"?POLL;\n")
        for line in gps.makefile():
            report = json.loads(line)
            if report["class"] == "POLL":
                tpv = report["tpv"][0]
                return (
                    [tpv["lat"], tpv["lon"], tpv["altHAE"]] if tpv["mode"] > 1 else None
                )


def send(address, port, period):
    """Tell the position every period until SIGTERM."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    number, due = 0, time.monotonic()
    while True:
        number, due = number + 1, due + period
        if here := position():
            message = {
                "id": f"{INSTANCE}-{number}",
                "topic": f"gps/{INSTANCE}",
                "position": here,
            }
            ts = time.time_ns()
            out.sendto(json.dumps(message).encode(), (address, port))
            log("sent", ts, message, position=here)
        time.sleep(max(0, due - time.monotonic()))


def receive(port):
    """Receive until SIGTERM."""
    inbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    inbox.bind(("", port))
    while True:
        data = inbox.recv(65535)
        log("received", time.time_ns(), json.loads(data))


if sys.argv[1] == "send":
    host, _, number = sys.argv[2].rpartition(":")
    send(host, int(number), float(sys.argv[3]))
else:
    receive(int(sys.argv[2]))
