"""Reads a configuration twice: `read_config.py FILE`. Prints the CPU ms of each as one JSON line."""

import json
import sys
import time

from anykit.app.config import read_config


def read() -> float:
    begun = time.process_time()
    read_config(sys.argv[1])
    return (time.process_time() - begun) * 1000


print(json.dumps({"first": read(), "again": read()}))
