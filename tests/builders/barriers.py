"""What keeps people out of a page, as axe finds it.

Nine tenths of axe's time are the contrast of each text with what lies behind it. That
is the same wherever elements, and all that are around them, have the same style: of a
hundred cells of a table it looks at one. All other rules look at everything.
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

  // Mark one element of each style, of those that have a text, or that hold nothing.
  const mark = () => {
    const styles = new Map();
    const look = (element, around) => {
      const own = getComputedStyle(element);
      const liesAnywhere = ["absolute", "fixed"].includes(own.position);
      const style = JSON.stringify([
        around, element.localName, element.getAttribute("class"),
        liesAnywhere && styles.size, ...names.map((name) => own.getPropertyValue(name)),
      ]);
      const isNew = !styles.has(style);
      if (isNew) styles.set(style, styles.size);
      const isSeen = hasText(element) || !element.children.length;
      element.toggleAttribute("data-unlike", isNew && isSeen);
      for (const child of element.children) look(child, styles.get(style));
    };
    look(document.body, null);
  };

  axe.configure({rules: [{id: "color-contrast", selector: "[data-unlike]"}]});
  window.findBarriers = async (rules) => {
    mark();
    const only = rules.length ? {runOnly: rules} : {};
    const {violations} = await axe.run({resultTypes: ["violations"], ...only});
    return violations.flatMap(({id, nodes}) =>
      nodes.map((node) => [id, node.html, node.failureSummary]));
  };

  // Where everything is, and whether it is shown.
  const places = () => new Map([...document.querySelectorAll("*")].map((element) => {
    const {x, y, width, height} = element.getBoundingClientRect();
    const isShown = element.checkVisibility({visibilityProperty: true});
    return [element, String([x + scrollX, y + scrollY, width, height, isShown])];
  }));
  let before = null;
  window.findMoved = () => {
    const [old, now] = [before ?? places(), places()];
    before = now;
    const all = new Set([...old.keys(), ...now.keys()]);
    return [...all].filter((each) => old.get(each) !== now.get(each))
      .map((each) => each.outerHTML.slice(0, 200));
  };
}"""


def find_barriers(page, rules=()):
    """What breaks a rule: the rule, its HTML, and what axe says.

    Of these rules, or of all that axe applies by itself.
    """
    _bring_tools(page)
    found = page.evaluate("rules => findBarriers(rules)", [*rules])
    return [tuple(each) for each in found]


def find_moved(page):
    """The HTML of what is elsewhere than at the last call, or no longer shown."""
    _bring_tools(page)
    return page.evaluate("findMoved()")


def _bring_tools(page):
    """Bring axe, and the tools above, into a page that has not got them."""
    from axe_playwright_python.base import AXE_SCRIPT

    if not page.evaluate("'findBarriers' in window"):
        page.evaluate(AXE_SCRIPT)
        page.evaluate(_TOOLS)
