// A page of what is going on is read anew by itself. A button ends that: nobody can read
// a page in peace that begins anew all the time.
for (const note of document.querySelectorAll("[data-refresh]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "push";
  let timer = null;
  const change = (isOn) => {
    clearTimeout(timer);
    timer = isOn ? setTimeout(() => location.reload(), 1000 * note.dataset.refresh) : null;
    button.textContent = isOn ? "Hold it still" : "Let it go on";
  };
  button.addEventListener("click", () => change(timer === null));
  note.append(button);
  change(true);
}
