"""The transcript player itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from anykit.testing.scripted import ScriptedHost, scripted_host
from anykit.testing.talks import Expected, Said, TalkBroken, parse_talk, play, shipped_talks
from anykit.transports import LineTransport

pytestmark = pytest.mark.anyio

HELLO = """
# a remark
> {"type":"handshake/req","id":"h","agent_caps":["tools"]}
<~ {"type":"handshake/resp","session_id":"$session"}
"""


@pytest.fixture
async def host() -> AsyncGenerator[ScriptedHost]:
    async with scripted_host(tools=[{"name": "a", "description": ""}]) as made:
        yield made


@pytest.fixture
async def transport(host: ScriptedHost) -> LineTransport:
    return await host.connect()


async def test_what_is_said_goes_as_it_is_and_names_are_bound(host: ScriptedHost, transport: LineTransport) -> None:
    bound = await play(HELLO + '> {"type":"ping","id":"p","about":"$session"}\n<~ {"type":"pong"}', transport)
    assert bound == {"session": "session-1"}
    assert host.received[-1]["about"] == "session-1"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('<~ {"type":"pang"}', '/type is "pong", not "pang"'),
        ('<~ {"missing":1}', "/ has no missing"),
        ('< {"type":"pong"}', "/ has the keys id, version, ts, req_id, type, uptime_seconds, not type"),
        ('<~ {"uptime_seconds":1}', "/uptime_seconds is 1.0, not 1"),
        ('<~ {"type":"$x","req_id":"$x"}', "/req_id is not what $x was before"),
    ],
)
async def test_a_wrong_answer_is_told_with_line_and_place(transport: LineTransport, line: str, fault: str) -> None:
    with pytest.raises(TalkBroken) as caught:
        await play('> {"type":"ping","id":"p"}\n' + line, transport)
    assert str(caught.value).startswith(f"line 2: {fault}")


async def test_lines_beside_each_other_may_come_in_any_order(transport: LineTransport) -> None:
    said = '> {"type":"ping","id":"a"}\n> {"type":"ping","id":"b"}\n'
    await play(said + '<? {"req_id":"b"}\n<? {"req_id":"a"}', transport)
    with pytest.raises(TalkBroken):
        await play(said + '<~ {"req_id":"b"}\n<~ {"req_id":"a"}', transport)


async def test_silence_an_end_and_what_is_no_json_break_a_talk(host: ScriptedHost, transport: LineTransport) -> None:
    with pytest.raises(TalkBroken, match=r'the host said nothing, not \{"type": "pong"\}'):
        await play('<~ {"type":"pong"}', transport, patience=0.05)
    await host.say(b'{"x": NaN}')
    with pytest.raises(TalkBroken, match="NaN is not JSON"):
        await play("<~ {}", transport)
    await host.drop()
    with pytest.raises(TalkBroken, match="the host went away"):
        await play("<~ {}", transport)


def test_a_talk_is_read_into_steps() -> None:
    steps = parse_talk('# r\n\n> x\n>hex ff 00\n<? {"a":1}\n<? {"b":2}\n<~ {"c":3}\n')
    assert steps[:2] == [Said(3, b"x"), Said(4, b"\xff\x00")]
    assert steps[2:] == [
        Expected(5, ({"a": 1}, {"b": 2}), whole=False, ordered=False),
        Expected(7, ({"c": 3},), whole=False),
    ]
    for text in ("x y", "< no json", ">hex zz"):
        with pytest.raises(ValueError, match="line 1: "):
            parse_talk(text)


def test_the_shipped_talks_can_be_read() -> None:
    talks = shipped_talks()
    assert "handshake" in talks
    assert "bad_lines" in talks
    assert all(parse_talk(text) for text in talks.values())
