"""The command that the conformance suite runs for each scenario: hands it to `person.py`, which has imported everything.

Imports little, since the suite starts forty of it at once. The socket is in `ANYKIT_PERSON`, the URL is the last argument.
"""

from __future__ import annotations

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.environ["ANYKIT_PERSON"])
    with connection.makefile("rw") as stream:
        env = {name: value for name, value in os.environ.items() if name.startswith("MCP_CONFORMANCE_")}
        stream.write(json.dumps({"url": sys.argv[-1], "env": env}) + "\n")
        stream.flush()
        code = 1
        for line in stream:
            if line.startswith("exit "):
                code = int(line.split()[1])
            else:
                sys.stdout.write(line)
sys.exit(code)
