"""The header of an ARFF file: the names and types of the attributes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .labels import kind_of
from .source import Source

_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\S+)\s+(.*)""", re.IGNORECASE)
_NUMBERS = ("numeric", "real", "integer")
_VALUE = re.compile(r"""\s*('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^,'"][^,]*|)([^,]*)(?:,|$)""")
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True)
class Attribute:
    """A column: its name, and its values if it is nominal."""

    name: str
    kind: str  # "number", "nominal" or "text"
    values: tuple[str, ...] = ()

    def numbers(self, source: Source) -> dict[str, float]:
        """What the values of a nominal attribute stand for, as a feature."""
        if self.kind == "nominal" and kind_of([value.encode() for value in self.values]) < 2:
            return {value: float(value) for value in self.values}
        if self.kind == "nominal" and len(self.values) <= 2:
            return {value: float(k) for k, value in enumerate(self.values)}
        raise source.error(
            f"the attribute {self.name!r} is a feature, and its values are not numbers; make a column "
            "of 0 and 1 for each of them first"
        )


def read_header(source: Source) -> list[Attribute]:
    """Read the lines up to ``@data``."""
    attributes: list[Attribute] = []
    while line := source.header_line():
        text = line.decode(errors="replace").strip()
        if not text or text.startswith("%") or text.lower().startswith("@relation"):
            continue
        if text.lower() == "@data":
            if not attributes:
                raise source.error("attributes expected before @data", source.lines_read, 1)
            return attributes
        found = _ATTRIBUTE.match(text)
        if found is None:
            raise source.error(f"@attribute or @data expected, got {text[:30]!r}", source.lines_read, 1)
        attributes.append(_attribute(source, *found.groups()))
    raise source.error("there is no line @data in it")


def _attribute(source: Source, name: str, kind: str) -> Attribute:
    name = split_values(name)[0] if name[0] in "'\"" else name
    if kind.startswith("{") and kind.rstrip().endswith("}"):
        values = split_values(kind.rstrip()[1:-1])
        return Attribute(name, "nominal", tuple(values))
    word = kind.split()[0].lower() if kind.split() else ""
    if word in _NUMBERS:
        return Attribute(name, "number")
    if word == "string":
        return Attribute(name, "text")
    raise source.error(
        f"the attribute {name!r} has a type that is not known: {kind[:30]!r}", source.lines_read
    )


def split_values(text: str) -> list[str]:
    """Values between commas, without their quotes.

    >>> split_values(" a, 'b, c' ,d")
    ['a', 'b, c', 'd']
    """
    values, at = [], 0
    while at < len(text):
        found = _VALUE.match(text, at)
        if found is None or found.end() == at:
            break
        values.append(unquoted(found.group(1).rstrip()))
        at = found.end()
    return values


def unquoted(value: str) -> str:
    """A value without its quotes."""
    return _ESCAPED.sub(r"\1", value[1:-1]) if value[:1] in ("'", '"') else value
