"""A CoAP server and client of aiocoap: serve HOST PORT, or ask URI."""

import asyncio
import sys

import aiocoap
from aiocoap import resource


class Echo(resource.Resource):
    async def render_post(self, request):
        return aiocoap.Message(code=aiocoap.CHANGED, payload=request.payload, content_format=request.opt.content_format)


class State(resource.Resource):
    async def render_get(self, request):
        return aiocoap.Message(payload=b"state of /state", content_format=0)


async def serve(host, port):
    site = resource.Site()
    site.add_resource(["messages"], Echo())
    site.add_resource(["state"], State())
    context = await aiocoap.Context.create_server_context(site, bind=(host, int(port)))
    print("ready", flush=True)
    await asyncio.Event().wait()
    await context.shutdown()


async def ask(uri):
    context = await aiocoap.Context.create_client_context()
    for length in 10, 1024, 5000:
        payload = bytes(i % 251 for i in range(length))
        message = aiocoap.Message(code=aiocoap.POST, uri=uri + "/messages", payload=payload, content_format=42)
        response = await context.request(message).response
        print("posted", length, response.code.dotted, str(response.payload == payload).lower(), int(response.opt.content_format), flush=True)
    response = await context.request(aiocoap.Message(code=aiocoap.GET, uri=uri + "/state")).response
    print("state", response.code.dotted, response.payload.decode(), flush=True)
    response = await context.request(aiocoap.Message(code=aiocoap.GET, uri=uri + "/missing")).response
    print("missing", response.code.dotted, flush=True)
    await context.shutdown()


asyncio.run({"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:]))
