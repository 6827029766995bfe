"""The least HTTP server that answers JSON: prints its port, then serves until its stdin ends."""

import asyncio
import sys

BODY = b'{"id":"a b","name":"Ada","tags":["x","y"],"n":12345678901234567890}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)


class Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.kept = b""

    def data_received(self, data: bytes) -> None:
        self.kept += data
        while (end := self.kept.find(b"\r\n\r\n")) >= 0:
            head = self.kept[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.kept) < end + 4 + length:
                return
            self.kept = self.kept[end + 4 + length :]
            self.transport.write(ANSWER)


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
