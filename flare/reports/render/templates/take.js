// Takes numbers and figures away, made from what the page shows: a CSV of each table, the
// SVG of each figure, in light colours whatever the screen's; and filters tables of teams.
const takeButton = (text, name, make, type) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "take";
  button.textContent = text;
  button.setAttribute("aria-label", `${text}: ${name}`);
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    const words = `${document.title} ${name}`.replace(/[^\p{L}\p{N}]+/gu, "_").slice(0, 100);
    link.download = `${words}.${type === "text/csv" ? "csv" : "svg"}`;
    link.href = URL.createObjectURL(new Blob([make()], { type }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  });
  return button;
};
// A text that a spreadsheet would take for a formula gets an apostrophe.
const csvCell = (text) => {
  const isNumber = text !== "" && Number.isFinite(Number(text));
  const safe = !isNumber && /^[=+\-@'\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const notesOf = (cell) => [...cell.querySelectorAll("small, abbr")]
  .map((note) => note.title || note.textContent).join("; ");
const valueOf = (cell) => {
  const bare = cell.cloneNode(true);
  bare.querySelectorAll("small, abbr, svg").forEach((part) => part.remove());
  const text = cell.title || bare.textContent.trim();
  return /[a-z]{2}/i.test(text) ? text : cell.dataset.v ?? text; // "2 to 3" has a key to sort by
};
const csvOf = (table) => {
  const rows = [...table.rows].map((row) => [...row.cells]);
  const noted = rows[0].map((_, column) => rows.some((row) => notesOf(row[column])));
  const lines = rows.map((row, n) => row.flatMap((cell, column) => {
    const note = n ? notesOf(cell) : `${valueOf(cell)}: note`;
    return noted[column] ? [valueOf(cell), note] : [valueOf(cell)];
  }).map(csvCell).join(",") + "\n");
  return `\ufeff${lines.join("")}`; // by the mark, spreadsheets know UTF-8
};
const PAINT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "opacity",
  "stroke-linecap", "stroke-linejoin", "paint-order", "vector-effect", "font-family",
  "font-size", "text-anchor", "overflow"];
const svgOf = (figure, name) => {
  const make = (parent, tag, at, text = "") => {
    const shape = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(at)) shape.setAttribute(key, value);
    shape.textContent = text;
    return parent.appendChild(shape);
  };
  const [root, light] = [document.documentElement, document.styleSheets[0].cssRules[0].style];
  const names = [...light].filter((key) => key.startsWith("--"));
  names.forEach((key) => root.style.setProperty(key, light.getPropertyValue(key)));
  const font = getComputedStyle(document.body).fontFamily;
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `13px ${font}`;
  const widest = (texts) => Math.max(0, ...texts.map((text) => pen.measureText(text).width));
  const drawing = figure.querySelector(":is(.plot, .points) > svg");
  const all = (css) => [...figure.querySelectorAll(css)];
  const labels = all(".label").map((label) => label.title || label.textContent.trim());
  const ends = all(".end").map((end) => end.textContent.trim());
  const keys = all(":scope > .key li");
  const left = 24 + (labels.length ? widest(labels) + 8 : 40);
  const width = Math.max(480, Math.round(drawing.getBoundingClientRect().width));
  const height = Number(drawing.getAttribute("height"));
  const right = left + width + 24 + widest(ends);
  const least = Math.max(widest([name]), left + 26 + widest(keys.map((key) => key.textContent)));
  const size = { width: Math.max(right, least) + 12, height: height + 56 + 20 * keys.length };
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  Object.entries(size).forEach(([key, value]) => svg.setAttribute(key, Math.ceil(value)));
  Object.assign(svg.style, { fontFamily: font });
  make(svg, "rect", { width: "100%", height: "100%", fill: light.getPropertyValue("--paper") });
  const ink = { fill: light.getPropertyValue("--ink"), "font-size": 13 };
  make(svg, "text", { ...ink, x: 12, y: 22, "font-weight": 600 }, name);
  const copy = drawing.cloneNode(true);
  const shapes = [...copy.querySelectorAll("*"), copy];
  [...drawing.querySelectorAll("*"), drawing].forEach((shape, n) => {
    const style = getComputedStyle(shape);
    PAINT.forEach((key) => shapes[n].setAttribute(key, style.getPropertyValue(key)));
  });
  copy.querySelectorAll(".here, .band").forEach((part) => part.remove());
  for (const [key, value] of Object.entries({ x: left, y: 36, width })) copy.setAttribute(key, value);
  svg.append(copy);
  const top = 40 + (figure.querySelector("[data-top]") ? 24 : 0);
  const step = figure.querySelector(".dense") ? 14 : 28;
  const write = (texts, x) => texts.forEach((text, n) =>
    make(svg, "text", { ...ink, x, y: top + step * (n + 0.5), "text-anchor": "end" }, text));
  write(labels, left - 12);
  write(ends, right);
  keys.forEach((item, n) => {
    const y = height + 60 + 20 * n;
    const style = getComputedStyle(item.firstElementChild);
    const isBare = style.backgroundColor === "rgba(0, 0, 0, 0)"; // a line across
    const at = { x: left, y: y - (isBare ? 5 : 10), height: isBare ? 1 : 11, opacity: style.opacity };
    const fill = isBare ? style.color : style.backgroundColor;
    make(svg, "rect", { ...at, width: parseFloat(style.width), fill });
    make(svg, "text", { ...ink, x: left + 26, y }, item.textContent.trim());
  });
  names.forEach((key) => root.style.removeProperty(key));
  return new XMLSerializer().serializeToString(svg);
};
for (const table of document.querySelectorAll(".view table")) {
  const name = table.caption.textContent.trim();
  const view = table.closest(".view");
  view.after(takeButton("Save as CSV", name, () => csvOf(table), "text/csv"));
  const head = table.tHead.querySelector(".name")?.textContent;
  if (head !== "team" || table.tBodies[0].rows.length <= 12) continue;
  const field = document.createElement("input");
  Object.assign(field, { type: "search", className: "filter", placeholder: "Filter teams" });
  field.setAttribute("aria-label", `Filter teams: ${name}`);
  view.before(field);
  field.addEventListener("input", () => {
    for (const row of table.tBodies[0].rows) {
      const text = valueOf(row.querySelector("th")).toLowerCase();
      row.hidden = !text.includes(field.value.trim().toLowerCase());
    }
  });
}
for (const figure of document.querySelectorAll("figure:has(:is(.plot, .points) > svg)")) {
  const title = figure.querySelector("figcaption").firstChild;
  const name = title.textContent.trim();
  title.after(takeButton("Save figure", name, () => svgOf(figure, name), "image/svg+xml"));
}
