"""Resources and prompts as messages for a model."""

from __future__ import annotations

import pytest

from anykit import Workbench, prompt, resource
from anykit.adapters import shaped_messages
from anykit.capabilities import BlobPart, ImagePart, InvalidInput, PromptMessage, TextPart

pytestmark = pytest.mark.anyio

MIXED = PromptMessage(
    role="assistant",
    content=(TextPart(text="see"), ImagePart(data=b"1", media_type="image/png"), BlobPart(data=b"2", name="a.bin")),
)


@resource("app://motto")
def motto() -> str:
    return "one toolbox"


@prompt
def review(code: str) -> str:
    return f"Review {code}"


async def test_resources_and_prompts_become_messages_in_order_without_a_tool_call() -> None:
    async with Workbench(motto, review) as bench:
        messages = await bench.context(resources=["app://motto"], prompts=[("review", {"code": "x"})])
        assert messages == [
            {
                "role": "user",
                "content": [{"type": "text", "text": "app://motto:"}, {"type": "text", "text": "one toolbox"}],
            },
            {"role": "user", "content": "Review x"},
        ]
        await bench.records.flush()
        assert list(await bench.records.tail("calls")) == []
        with pytest.raises(InvalidInput):
            await bench.context(resources=["app://nothing"])


def test_each_provider_gets_its_own_shape() -> None:
    [openai] = shaped_messages([MIXED], "openai", limit=1000)
    assert [part["type"] for part in openai["content"]] == ["text", "image_url", "text"]
    assert openai["content"][1]["image_url"]["url"] == "data:image/png;base64,MQ=="
    [anthropic] = shaped_messages([MIXED], "anthropic", limit=1000)
    assert anthropic["role"] == "assistant"
    assert anthropic["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": "MQ=="}
    [gemini] = shaped_messages([MIXED], "gemini", limit=1000)
    assert gemini["role"] == "model"
    assert gemini["parts"][2] == {"inline_data": {"mime_type": "application/octet-stream", "data": "Mg=="}}


def test_the_whole_is_bounded_and_says_what_was_cut() -> None:
    long = [PromptMessage(role="user", content=(TextPart(text="a" * 60),)) for _ in range(3)]
    first, second, third = (message["content"] for message in shaped_messages(long, "openai", limit=100))
    assert first == "a" * 60
    assert second == "a" * 40 + "\n[cut: 40 of 60 bytes shown]"
    assert third == "\n[cut: 0 of 60 bytes shown]"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="known: openai, anthropic, gemini"):
        shaped_messages([], "other", limit=1)  # pyright: ignore[reportArgumentType]
