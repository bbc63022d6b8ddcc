// Nobody scrolls on paper: a table that is wider than a sheet is printed in parts, each of
// which begins with the column of names. The screen keeps the whole table.
const SHEET = 680; // pixels between the margins of A4
const columnsOf = (table) => {
  table.classList.add("narrowest");
  const heads = [...table.tHead.rows[0].cells];
  const widths = heads.map((head) => head.offsetWidth);
  table.classList.remove("narrowest");
  const name = heads.findIndex((head) => head.classList.contains("name"));
  const parts = [];
  let room = 0;
  widths.forEach((width, column) => {
    if (column === name) return;
    if (room < width) {
      parts.push([name]);
      room = SHEET - widths[name];
    }
    parts.at(-1).push(column);
    room -= width;
  });
  return parts;
};
addEventListener("beforeprint", () => {
  for (const table of document.querySelectorAll("table")) {
    const parts = columnsOf(table);
    if (parts.length < 2) continue;
    table.after(...parts.map((columns) => {
      const copy = table.cloneNode(true);
      copy.classList.add("part");
      for (const row of copy.rows) {
        [...row.cells].forEach((cell, n) => columns.includes(n) || cell.remove());
      }
      return copy;
    }));
    table.hidden = true;
  }
});
addEventListener("afterprint", () => {
  for (const part of document.querySelectorAll(".part")) {
    part.previousElementSibling.hidden = false;
    part.remove();
  }
});
