// A click on a name marks it in all figures and tables of the page; another click ends it.
const marked = new Set();
const nameOf = (place) =>
  (place.querySelector("a") ?? place.firstChild ?? place).textContent.trim()
    .replace(/^(\d+|\(\d+ missing\)) /, "");
const isMarked = (place) => marked.has(nameOf(place));
const paintMarks = () => {
  for (const table of document.querySelectorAll("table[data-sort]")) {
    const heads = [...table.tHead.rows[0].cells].map(isMarked);
    for (const row of table.tBodies[0].rows) {
      row.classList.toggle("marked", isMarked(row.querySelector("th")));
      heads.forEach((is, column) => row.cells[column].classList.toggle("marked", is));
    }
  }
  for (const chart of document.querySelectorAll(".chart")) {
    const drawing = chart.querySelector(".plot > svg");
    const top = chart.querySelector("[data-top]") ? 24 : 0;
    chart.querySelectorAll(".band").forEach((old) => old.remove());
    chart.querySelectorAll(".label").forEach((label, row) => {
      label.classList.toggle("marked", isMarked(label));
      if (!isMarked(label)) return;
      const band = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const height = chart.classList.contains("dense") ? 14 : 28; // also where it is folded
      const at = { class: "band", width: "100%", y: top + row * height, height };
      for (const [key, value] of Object.entries(at)) band.setAttribute(key, value);
      drawing.prepend(band);
    });
  }
  for (const pin of document.querySelectorAll(".pin")) {
    pin.setAttribute("aria-pressed", isMarked(pin.parentElement));
  }
};
for (const head of document.querySelectorAll(".whole tbody th")) {
  const pin = document.createElement("button");
  pin.type = "button";
  pin.className = "pin";
  pin.setAttribute("aria-label", `Mark ${nameOf(head)} everywhere`);
  head.append(pin);
}
paintMarks();
document.addEventListener("click", (event) => {
  const pin = event.target.closest(".pin");
  if (!pin && event.target.closest("a, button")) return;
  const place = pin?.parentElement ?? event.target.closest(".label, tbody th");
  if (!place) return;
  if (!marked.delete(nameOf(place))) marked.add(nameOf(place));
  paintMarks();
});
