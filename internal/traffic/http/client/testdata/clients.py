"""HTTP clients of Python: urllib and requests post a body to the URL of the first argument, twice over one session, and print what comes back."""

import sys
import urllib.request

import requests

url = sys.argv[1]
body = bytes(range(256)) * 40

with urllib.request.urlopen(urllib.request.Request(url + "/urllib?a=b", data=body, headers={"Content-Type": "application/cbor"})) as answer:
    print("urllib", answer.status, answer.read() == body, answer.headers["Content-Type"])
with urllib.request.urlopen(url + "/urllib") as answer:
    print("urllib", answer.status, answer.read())
with requests.Session() as session:
    for _ in range(2):
        answer = session.post(url + "/requests", data=body, headers={"Content-Type": "application/json"})
        print("requests", answer.status_code, answer.content == body, answer.headers["Content-Type"])
    # A generator is sent in chunks, without a length.
    answer = session.post(url + "/requests", data=iter([body[:1000], body[1000:]]))
    print("requests", answer.status_code, answer.content == body)
    print("requests", session.post(url + "/refuse", data=b"x").status_code)
