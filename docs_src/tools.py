"""Two functions that become tools."""

from anykit import tool


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool(read_only=True)
def count_words(text: str) -> dict[str, int]:
    """Counts how often each word occurs.

    Args:
        text: What to count in.
    """
    words = text.lower().split()
    return {word: words.count(word) for word in sorted(set(words))}
