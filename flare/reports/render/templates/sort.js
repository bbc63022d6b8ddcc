"use strict";
// Tables sort by a click, or a key, on the head of a column; without this, they are read
// in the order in which they were written.
for (const table of document.querySelectorAll("table[data-sort]")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const said = document.createElement("p");
  said.className = "unseen";
  said.setAttribute("role", "status");
  table.parentElement.after(said);
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  };
  // What is no number, such as "no result", stands behind all numbers in both directions.
  const compare = (a, b, sign) =>
    typeof a === "number" && typeof b === "number" ? sign * (a - b)
      : typeof a === "number" ? -1
      : typeof b === "number" ? 1
      : sign * a.localeCompare(b, "en", { numeric: true });
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    const words = document.createElement("span");
    words.append(...head.childNodes);
    button.append(words);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [key(row, column), row]);
      rows.sort((a, b) => compare(a[0], b[0], down ? -1 : 1));
      body.append(...rows.map((pair) => pair[1]));
      said.textContent =
        `Sorted by ${button.textContent}, ${down ? "descending" : "ascending"}.`;
    });
  });
}
