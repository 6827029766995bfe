"""A small A2A agent to try things on: it adds, and asks where something is missing."""

import json
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TASKS: dict[str, dict] = {}


def state_of(task_id: str, text: str) -> dict:
    """The task after it heard `text`."""
    numbers = [int(number) for number in re.findall(r"-?\d+", TASKS.get(task_id, {}).get("heard", "") + " " + text)]
    task = {"id": task_id, "contextId": "c1", "heard": text}
    if len(numbers) < 2:
        question = {"role": "agent", "parts": [{"kind": "text", "text": "Which number should I add?"}]}
        return task | {"status": {"state": "input-required", "message": question}}
    result = {"parts": [{"kind": "text", "text": str(sum(numbers))}]}
    return task | {"status": {"state": "completed"}, "artifacts": [result]}


class Calculator(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path != "/.well-known/agent-card.json":
            self.answer(404, {})
            return
        skill = {"id": "add", "name": "Add", "description": "Adds two numbers"}
        url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.answer(200, {"name": "Calc Agent", "url": url, "skills": [skill]})

    def do_POST(self) -> None:
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if call["method"] == "SendMessage":
            message = call["params"]["message"]
            task_id = message.get("taskId") or uuid.uuid4().hex
            TASKS[task_id] = state_of(task_id, message["parts"][0]["text"])
        else:
            task_id = call["params"]["id"]
        self.answer(200, {"jsonrpc": "2.0", "id": call["id"], "result": TASKS[task_id]})

    def answer(self, status: int, value: dict) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def start() -> str:
    """Serve in the background; gives the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Calculator)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"
