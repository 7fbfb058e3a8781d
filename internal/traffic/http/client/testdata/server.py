"""An HTTP/1.1 server of Python that keeps connections: it answers a POST with its own body and headers, and GET /missing with 404."""

import http.server
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print("POST", self.path, len(body), self.client_address[1], flush=True)
        self.send_response(200)
        for name in ("Content-Type", "Content-Encoding"):
            if self.headers[name]:
                self.send_header(name, self.headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_error(404) if self.path == "/missing" else self.chunked()

    def chunked(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
