"""The least host over stdio: lines in, a task a call, lines out."""

import asyncio
import sys

from floor import answer


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)

    async def serve(line: bytes) -> None:
        writer.write(await answer(line) + b"\n")

    async with asyncio.TaskGroup() as calls:
        while line := await reader.readline():
            calls.create_task(serve(line))


asyncio.run(main())
