"""A toolkit: notes in a folder that whoever uses it names."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from anykit import ToolError, Toolkit, tool

Title = Annotated[str, Field(pattern=r"^\w[\w -]{0,99}$", description="Letters, digits, spaces")]


class Notes(Toolkit):
    """Short notes, one file each."""

    name = "notes"
    category = "io"
    tags = ("files",)

    class Config(BaseModel):
        folder: Path = Field(description="The folder that the notes are in")
        read_only: bool = Field(default=False, description="Do not write")

    async def setup(self, config: Config) -> None:
        self.folder = config.folder.resolve()
        if self.bounds is not None and not any(self.folder.is_relative_to(root) for root in self.bounds.roots):
            raise ToolError("this folder is outside of what the operator allows")
        if not self.folder.is_dir():
            raise ToolError("there is no such folder")
        if config.read_only:
            self.disable("add_note", "configured as read-only")

    @tool(read_only=True)
    def list_notes(self) -> list[str]:
        """Lists the titles of all notes."""
        return sorted(path.stem for path in self.folder.glob("*.txt"))

    @tool
    def add_note(self, title: Title, text: str) -> str:
        """Writes a note; one of the same title is replaced."""
        (self.folder / f"{title}.txt").write_text(text)
        self.emit("status", {"message": f"{title} was written"})
        return f"noted {title}"
