"""SVG of a Figure: text stays text, colours may be CSS variables, same input, same bytes.

`standalone` makes a file that follows the reader's light or dark setting, `inline` an element for a
page that defines the variables itself (`css` gives them).
"""

from __future__ import annotations

import html
import io
import re
import warnings
from typing import TYPE_CHECKING, Any

from . import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FONT = "'DejaVu Sans', Verdana, 'Segoe UI', system-ui, sans-serif"
_PREFIX = "--cb-"
#: What the drawing library puts into a page-wide rule; here it belongs to the drawing alone.
_JOINS = "stroke-linejoin: round; stroke-linecap: butt"


def css(selector: str = ":root") -> str:
    """The variables: light, and dark where the reader prefers it."""
    light, dark = _declarations(style.LIGHT), _declarations(style.DARK)
    return (
        f"{selector} {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ {selector} {{ {dark} }} }}\n"
    )


def _declarations(theme: style.Theme) -> str:
    return " ".join(f"{_PREFIX}{role}: {colour};" for role, colour in theme.roles().items())


def inline(figure: Figure, name: str, label: str) -> str:
    """An `<svg>` element whose ids begin with `name`, with `label` as its accessible name.

    For a Figure of the theme `auto` the page must define the variables of `css`.
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(f"an id cannot begin with {name!r}")
    raw = _raw(figure)
    width, height = (float(side) for side in figure.get_size_inches())
    body = raw[raw.index("<g id=") : raw.rindex("</svg>")]
    body = _own_ids(_plain_references(body), name)
    body = _variables(_TAG.sub(_shorter, body))
    # Sizes in CSS pixels, 96 an inch; the drawing shrinks with a narrow page, never grows.
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {72 * width:g} {72 * height:g}" '
        f'width="{96 * width:.0f}" height="{96 * height:.0f}" role="img" '
        f'style="max-width: 100%; height: auto; font-family: {FONT}; {_JOINS}">'
    )
    return f"{opening}\n<title>{html.escape(label)}</title>\n{body}</svg>\n"


def standalone(figure: Figure, label: str) -> str:
    """An SVG file of a Figure of the theme `auto`, readable on light and on dark."""
    element = inline(figure, "cb", label)
    head, rest = element.split(">", 1)
    return f"{head}>\n<style>\n{css('svg')}</style>{rest}"


def _raw(figure: Figure) -> str:
    """What the drawing library makes. `svg.fonttype` and the salt of ids exist as settings only."""
    import matplotlib

    out = io.StringIO()
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "capybench"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The reader's fonts count for text, not those that the layout was estimated with.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(out, format="svg", metadata={"Date": None}, facecolor=figure.get_facecolor())
    return out.getvalue()


_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'(?:url\(|href=")#([^)"]+)')
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_STYLE_RULE = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>\s*", re.DOTALL)


def _plain_references(text: str) -> str:
    """Without comments (which repeat every text) and without the page-wide rule."""
    text = _STYLE_RULE.sub("", _COMMENT.sub("", text))
    return text.replace("xlink:href=", "href=")


def _own_ids(text: str, name: str) -> str:
    """Ids that nothing refers to go, the others get a prefix: a page holds many drawings."""
    used = {found: f"{name}-{nth}" for nth, found in enumerate(dict.fromkeys(_references(text)))}

    def renamed(match: re.Match[str]) -> str:
        return f' id="{used[match[1]]}"' if match[1] in used else ""

    def referred(match: re.Match[str]) -> str:
        return match[0].replace("#" + match[1], "#" + used[match[1]])

    return _REFERENCE.sub(referred, _ID.sub(renamed, text))


def _references(text: str) -> list[str]:
    return _REFERENCE.findall(text)


#: `font: 700 9px 'DejaVu Sans', …`: the family is the whole drawing's.
_FONT_RULE = re.compile(r"font: (?:(\d+) )?([\d.]+px) '[^;\"]*(?=[;\"])")
_FONT_FAMILY = re.compile(r"font-family: [^;\"]*;? ?")
_TAG = re.compile(r"<[^>]*>")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def _shorter(tag: re.Match[str]) -> str:
    """A tag with its numbers rounded to a hundredth of a point; texts between tags stay."""
    return _LONG_NUMBER.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), tag[0])


def _variables(text: str) -> str:
    """Marks of the theme `auto` become variables; the family of fonts is left to the drawing."""
    for role, mark in style.AUTO.roles().items():
        text = text.replace(mark, f"var({_PREFIX}{role})")

    def sized(match: re.Match[str]) -> str:
        weight = f"; font-weight: {match[1]}" if match[1] else ""
        return f"font-size: {match[2]}{weight}"

    return _FONT_FAMILY.sub("", _FONT_RULE.sub(sized, text))
