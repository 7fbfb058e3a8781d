"""Python's HTTP clients with the proxy of the environment (http_proxy)."""

import sys
import urllib.request

import requests

url = sys.argv[1]
body = b"p" * 100_000
print("urllib POST", urllib.request.urlopen(url + "/urllib", data=body).read().decode())
print("urllib GET", urllib.request.urlopen(url + "/urllib").read().decode())
with requests.Session() as session:
    for data in (body, iter([body[:50_000], body[50_000:]])):
        response = session.post(url + "/requests", data=data)
        print("requests POST", response.status_code, response.text)
    response = session.get(url + "/requests")
    print("requests GET", response.status_code, response.text)
try:
    requests.get(url.replace("http:", "https:"), proxies={"https": requests.utils.getproxies()["http"]})
except requests.exceptions.ProxyError as error:
    print("https", error)
