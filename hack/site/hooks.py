"""Turns the repository's links into the site's: a folder is its README, and what is no page becomes plain text."""

import posixpath
import re

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(?ms)^( *```.*?^ *```)")
LIST_ITEM = re.compile(r"^ *([-*]|\d+\.) ")


def on_page_markdown(markdown, page, files, **_):
    """Change text only, never code."""
    parts = FENCE.split(markdown)
    return "".join(part if FENCE.match(part) else spaced(linked(part, page.file.src_uri, files)) for part in parts)


def linked(text: str, source: str, files) -> str:
    """A text whose links lead to pages of the site."""

    def replace(match: re.Match) -> str:
        label, target = match.groups()
        path, hash_sign, anchor = target.partition("#")
        if ":" in target or not path:
            return match[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if files.get_file_from_path(there):
            return match[0]
        if files.get_file_from_path(f"{there}/README.md"):
            return f"[{label}]({path.rstrip('/')}/README.md{hash_sign}{anchor})"
        return label

    return LINK.sub(replace, text)


def spaced(text: str) -> str:
    """A list that follows a paragraph directly is one on GitHub; here it takes an empty line."""
    lines: list[str] = []
    for line in text.split("\n"):
        if LIST_ITEM.match(line) and lines and lines[-1].strip() and not LIST_ITEM.match(lines[-1]) and not lines[-1].startswith(" "):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)
