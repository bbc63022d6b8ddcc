// Figures tell the value that is pointed at, also by the arrow keys; without this, the
// tables behind them have all values.
for (const figure of document.querySelectorAll("figure[data-tips]")) {
  const chart = figure.querySelector(".chart");
  const drawing = chart.querySelector(".plot > svg");
  const labels = [...chart.querySelectorAll(".label")];
  const top = chart.querySelector("[data-top]") ? 24 : 0;
  const height = chart.classList.contains("dense") ? 14 : 28; // also where it is folded
  const told = () => {
    const { names, rows } = JSON.parse(figure.querySelector("script").textContent);
    return rows.map((row) =>
      row.split(" ").map((value, n) => [names[n], value]).filter(([, value]) => value && value !== "-"));
  };
  const points = () => {
    const found = labels.map(() => []);
    for (const path of drawing.querySelectorAll(".dots")) {
      for (const [, x, y] of path.getAttribute("d").matchAll(/M([\d.]+) ([\d.]+)h0/g)) {
        found[Math.floor((y - top) / height)].push(x / 1000);
      }
    }
    return told().map((row, r) =>
      row.map(([name, value], n) => ({ x: found[r][n], name, value }))
        .sort((a, b) => a.x - b.x || a.value - b.value));
  };
  const fields = () => {
    const rows = [...figure.querySelectorAll("tbody tr")].map((row) => [...row.cells]);
    return labels.map((_, r) =>
      rows.map((cells, n) => ({
        x: (n + 0.5) / rows.length,
        name: cells[0].textContent,
        value: cells[r + 1].textContent,
      })));
  };
  const items = figure.dataset.tips === "map" ? fields() : points();
  const said = document.createElement("p");
  said.className = "tip";
  said.setAttribute("role", "status");
  chart.after(said);
  chart.setAttribute("aria-description", "The arrow keys read its values.");
  chart.tabIndex = 0;
  const here = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  here.setAttribute("class", "here");
  here.setAttribute("r", "6");
  let row = -1;
  let place = 0;
  const show = (r, n) => {
    const item = items[r]?.[n];
    if (!item || (r === row && n === place && here.isConnected)) return;
    [row, place] = [r, n];
    const [label, name] = [labels[r].textContent, item.name].map((text) =>
      Object.assign(document.createElement("bdi"), { textContent: text }));
    said.replaceChildren(label, ", ", name, `: ${item.value}`);
    here.setAttribute("cx", `${100 * item.x}%`);
    here.setAttribute("cy", top + height * (r + 0.5));
    drawing.append(here);
    const [at, around] = [here, figure].map((part) => part.getBoundingClientRect());
    const left = Math.min(at.left - around.left, around.width - said.offsetWidth);
    said.style.left = `${Math.max(left, 0)}px`;
    said.style.top = `${at.bottom - around.top + 6}px`;
  };
  const hide = () => {
    here.remove();
    said.textContent = "";
  };
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  const nearest = (r, x) => {
    let best = 0;
    items[r]?.forEach((item, n) => {
      if (Math.abs(item.x - x) < Math.abs(items[r][best].x - x)) best = n;
    });
    return best;
  };
  const goTo = (r, x) => show(r, nearest(r, x));
  drawing.parentElement.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const r = Math.floor((event.clientY - box.top - top) / height);
    if (r >= 0) goTo(r, (event.clientX - box.left) / box.width);
  });
  const step = (by) => {
    const x = items[row]?.[place]?.x ?? 0;
    let next = row + by;
    while (items[next] && !items[next].length) next += by;
    goTo(next, x);
  };
  const keys = {
    ArrowRight: () => (row < 0 ? step(1) : show(row, place + 1)),
    ArrowLeft: () => show(row, place - 1),
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    Home: () => show(row, 0),
    End: () => show(row, (items[row]?.length ?? 0) - 1),
  };
  chart.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
}
