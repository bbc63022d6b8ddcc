// Shows the cases with one kind of fault; without this, all are shown.
for (const bar of document.querySelectorAll(".filters")) {
  const buttons = [...bar.querySelectorAll("button")];
  bar.hidden = false;
  bar.addEventListener("click", ({ target }) => {
    if (!buttons.includes(target)) return;
    buttons.forEach((button) => button.setAttribute("aria-pressed", button === target));
    for (const card of document.querySelectorAll(".card")) {
      const kinds = card.dataset.kinds.split(",");
      card.hidden = target.value !== "" && !kinds.includes(target.value);
    }
  });
}
