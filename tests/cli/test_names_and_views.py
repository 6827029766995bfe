"""`list --names` and `--view`."""

from __future__ import annotations

from pathlib import Path

from cli.running import anykit


def configured(folder: Path) -> list[str]:
    file = folder / "own.toml"
    file.write_text(
        'sources = ["tools.py"]\n\n[tools.add]\nname = "plus"\n\n[views.sums]\ninclude = ["plus"]\n\n[views.none]\ninclude = ["zz*"]\n'
    )
    return ["--config", str(file)]


def test_names_are_shown_with_what_they_are_at_their_source_and_why(folder: Path) -> None:
    done = anykit("list", "--names", "--json", *configured(folder))
    assert done.code == 0
    plus = next(one for one in done.json if one["exposed"] == "plus")
    assert plus == {"exposed": "plus", "original": "add", "source": "tools", "reason": "chosen in the configuration"}
    assert {one["reason"] for one in done.json if one != plus} <= {None}
    lines = anykit("list", "--names", *configured(folder)).out.splitlines()
    assert "plus\tadd\ttools\tchosen in the configuration" in lines


def test_a_view_shows_only_what_is_in_it(folder: Path) -> None:
    done = anykit("list", "tools", "--view", "sums", "--json", *configured(folder))
    assert [one["name"] for one in done.json] == ["plus"]
    assert anykit("list", "tools", "--view", "none", "--json", *configured(folder)).json == []


def test_a_view_that_there_is_none_of_is_refused_with_the_nearest(folder: Path) -> None:
    for verb in ("list", "serve"):
        done = anykit(verb, "--view", "sum", *configured(folder))
        assert done.code == 2
        assert "there is no view 'sum'; did you mean sums?" in done.err
