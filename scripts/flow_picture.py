"""The picture of how files flow through the program, readable in the dark, too."""

from __future__ import annotations

WORDS = (
    "Predictions and reference labels are evaluated to metrics.json; teams' Docker"
    " images are measured to predictions and efficiency.csv; both are ranked."
)
BLUE = "#3b82c4"
"""The colour of arrows: it stands out from white and from black."""

BOXES = (
    (10, 16, 170, "predictions"),
    (10, 84, 170, "reference labels"),
    (10, 152, 170, "teams' Docker images|and the CTs"),
    (240, 50, 130, "*evaluate"),
    (240, 152, 130, "*measure"),
    (430, 50, 150, "metrics.json|DSC, NSD"),
    (430, 152, 150, "efficiency.csv|time, GPU memory"),
    (640, 101, 100, "*rank"),
    (800, 101, 178, "ranking, its certainty,|tables for the paper"),
)
"""The left and upper corner of each box, its width and its lines; * is a command."""

ARROWS = (
    *("180 40L236 68", "180 108L236 82", "180 176L236 176", "370 74L426 74"),
    *("370 176L426 176", "580 74L636 116", "580 176L636 134", "740 125L796 125"),
    "305 152L305 102",
)


def flow_picture() -> str:
    """The SVG, without a ground of its own; its boxes are dark where the reader is."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 990 216" role="img"'
        f' aria-label="{WORDS}" font-family="sans-serif" font-size="14">',
        "  <style>@media (prefers-color-scheme: dark)"
        " { rect { fill: #16324f } text { fill: #e8f1fb } }</style>",
        '  <defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6"'
        f' markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="{BLUE}"/>'
        "</marker></defs>",
    ]
    for path in ARROWS:
        parts.append(
            f'  <path d="M{path}" stroke="{BLUE}" stroke-width="2"'
            ' marker-end="url(#a)"/>'
        )
    for box in BOXES:
        parts += _box(*box)
    return "\n".join([*parts, "</svg>\n"])


def _box(x: int, y: int, width: int, text: str) -> list[str]:
    """A box and its lines, which stand in its middle."""
    is_command, lines = text.startswith("*"), text.lstrip("*").split("|")
    fill, ink = ("#1f5fa8", "#ffffff") if is_command else ("#e8f1fb", "#16324f")
    weight = ' font-weight="600"' if is_command else ""
    parts = [
        f'  <rect x="{x}" y="{y}" width="{width}" height="48" rx="6" fill="{fill}"'
        f' stroke="{BLUE}"/>'
    ]
    for row, line in enumerate(lines):
        baseline = y + 29 - 8.5 * (len(lines) - 1) + 17 * row
        parts.append(
            f'  <text x="{x + width / 2}" y="{baseline}" text-anchor="middle"'
            f' fill="{ink}"{weight}>{line}</text>'
        )
    return parts
