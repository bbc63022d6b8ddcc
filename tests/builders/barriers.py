"""What keeps people out of a page, as axe finds it.

Nine tenths of axe's time are the contrast of each text with what lies behind it. That
is the same wherever elements, and all that are around them, have the same style: of a
hundred cells of a table it looks at one, or, where it cannot tell, at all. All other
rules look at everything.
"""

COLOURS = ("color-contrast", "link-in-text-block")
"""The rules that look at colours; a colour scheme changes nothing else."""

_TOOLS = """() => {
  const names = [
    "color", "background-color", "background-image", "opacity", "mix-blend-mode",
    "filter", "font-size", "font-weight", "text-shadow", "-webkit-text-fill-color",
    "-webkit-text-stroke", "display", "visibility", "position",
  ];
  const hasText = (element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());

  // All elements that have a text, or that hold nothing, by their style.
  const byStyle = () => {
    const styles = new Map();
    const look = (element, around) => {
      const own = getComputedStyle(element);
      const liesAnywhere = ["absolute", "fixed"].includes(own.position);
      const style = JSON.stringify([
        around, element.localName, element.getAttribute("class"),
        liesAnywhere && styles.size, ...names.map((name) => own.getPropertyValue(name)),
      ]);
      if (!styles.has(style)) styles.set(style, {number: styles.size, alike: []});
      const {number, alike} = styles.get(style);
      if (hasText(element) || !element.children.length) alike.push(element);
      for (const child of element.children) look(child, number);
    };
    look(document.body, null);
    return [...styles.values()].map(({alike}) => alike).filter((alike) => alike.length);
  };

  axe.configure({rules: [{id: "color-contrast", selector: "[data-looked-at]"}]});
  const run = async (elements, rules) => {
    for (const old of document.querySelectorAll("[data-looked-at]"))
      old.removeAttribute("data-looked-at");
    for (const element of elements) element.setAttribute("data-looked-at", "");
    const only = rules.length ? {runOnly: rules} : {};
    return axe.run(
      {elementRef: true, selectors: false, preload: false, ...only});
  };

  window.findBarriers = async (rules) => {
    const styles = byStyle();
    const first = await run(styles.map(([element]) => element), rules);
    // It cannot tell of one that is hidden, or very short, or that others lie upon.
    const known = new Set([...first.passes, ...first.violations]
      .filter(({id}) => id === "color-contrast")
      .flatMap(({nodes}) => nodes.map(({element}) => element)));
    const others = styles.filter(([element]) => !known.has(element))
      .flatMap(([_, ...alike]) => alike);
    const second = others.length && await run(others, ["color-contrast"]);
    return [first, second || {violations: []}].flatMap(({violations}) => violations)
      .flatMap(({id, nodes}) => nodes.map((it) => [id, it.html, it.failureSummary]));
  };
}"""


def find_barriers(page, rules=()):
    """What breaks a rule: the rule, its HTML, and what axe says.

    Of these rules, or of all that axe applies by itself.
    """
    _bring_tools(page)
    found = page.evaluate("rules => findBarriers(rules)", [*rules])
    return [tuple(each) for each in found]


def _bring_tools(page):
    from axe_playwright_python.base import AXE_SCRIPT

    if not page.evaluate("'findBarriers' in window"):
        page.evaluate(AXE_SCRIPT)
        page.evaluate(_TOOLS)


# --- Contrast ---------------------------------------------------------------------

TEXT_CONTRAST = 4.5
"""Least contrast of a text with what is behind it (WCAG 2.2, 1.4.3)."""

SHAPE_CONTRAST = 3.0
"""Least contrast of a dot or line that has to be seen (WCAG 2.2, 1.4.11)."""


def luminance(colour):
    """Relative luminance of a colour such as ``#0b5c9e``, from 0 to 1 (WCAG 2.2)."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first, second):
    """Contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    dark, light = sorted(map(luminance, (first, second)))
    return (light + 0.05) / (dark + 0.05)
