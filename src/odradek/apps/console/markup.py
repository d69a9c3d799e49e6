"""HTML from values. All values that aren't HTML are escaped: a topic's name or a record can't become part of the page.

    tag("a", name, href=link("topics", name), cls="name")

Nothing else in the console joins strings to HTML.
"""

from collections.abc import Iterable, Iterator
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

_VOID = frozenset({"br", "input", "img", "meta", "path", "rect", "line", "circle", "polyline", "polygon", "use"})
Html = Markup
Content = object


def tag(name: str, /, *children: Content, cls: str = "", **attributes: object) -> Html:
    """An element. `data_act` is written data-act, `for_` for; an attribute that is None or False is left out."""
    text = "".join([_attribute(key, value) for key, value in attributes.items()])
    if cls:
        text = _attribute("class", cls) + text
    return Markup(f"<{name}{text}/>" if name in _VOID else f"<{name}{text}>{''.join(_flat(children))}</{name}>")


def together(*parts: Content) -> Html:
    """Join parts; lists are flattened, None is left out."""
    return Markup("".join(_flat(parts)))


def _flat(parts: Iterable[Content]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, list | tuple):
            yield from _flat(part)
        elif part is not None:
            yield escape(part)


def _attribute(name: str, value: object) -> str:
    """Build plain strings here and in `tag`: a Markup escapes every part that is added to it, which is slow."""
    if value is None or value is False:
        return ""
    shown = name.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{escape(value)}"'


def link(*parts: str, **query: object) -> str:
    """An address on this console; every part is quoted."""
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    given = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path
