"""How a kit's files are written: each value is quoted by its format's own writer, so that a name can never become code."""

from __future__ import annotations

import json
import re
import shlex
from importlib import resources
from typing import Any

import yaml


def one_line(value: Any, limit: int = 120) -> str:
    """A value as printable text on one line, for comments and headings; what is not printable becomes a space."""
    text = "".join(character if character.isprintable() else " " for character in str(value))
    return text if len(text) <= limit else text[: limit - 3] + "..."


def slug(text: str, limit: int = 40) -> str:
    """A name that file systems, Kubernetes, Slurm and SkyPilot all take: small letters, digits and single dashes."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:limit].strip("-")
    return plain if plain[:1].isalpha() else f"run-{plain}".strip("-")


def comments(lines: tuple[str, ...], mark: str = "# ") -> str:
    """Lines as a comment block; none of them can leave it."""
    return "".join(f"{mark}{one_line(line, 200)}\n" for line in lines)


def to_yaml(data: Any, header: tuple[str, ...]) -> str:
    """YAML in the order given, under its header."""
    return comments(header) + yaml.safe_dump(data, sort_keys=False, allow_unicode=False, width=100)


def to_yaml_documents(documents: tuple[Any, ...], header: tuple[str, ...]) -> str:
    """Several YAML documents in one file."""
    return comments(header) + yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=False, width=100)


def to_json(data: Any) -> str:
    """JSON with two spaces; plain ASCII."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    if isinstance(value, str):
        # JSON's escapes are TOML's, except for characters beyond 16 bits (written as they are) and DEL
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def to_toml(sections: dict[str, dict[str, Any]], header: tuple[str, ...]) -> str:
    """TOML of one level of tables; keys are ours and plain."""
    parts = []
    for name, values in sections.items():
        rows = "".join(f"{key} = {_toml_value(value)}\n" for key, value in values.items() if value is not None)
        parts.append(f"[{name}]\n{rows}")
    return comments(header) + "\n" + "\n".join(parts)


def quote(value: Any) -> str:
    """One word for a shell."""
    return shlex.quote(str(value))


def template(name: str) -> str:
    """A file of `templates/` as it is. Templates hold no placeholders: what varies stands in the kit's data files."""
    return resources.files("advisor.handoff").joinpath("templates", name).read_text(encoding="utf-8")
