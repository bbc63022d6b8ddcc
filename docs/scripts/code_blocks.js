// The theme puts the buttons of every block of code into a landmark without a name, which
// a screen reader would announce.
new MutationObserver(() => {
  for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])")) {
    buttons.setAttribute("role", "none");
  }
}).observe(document, { childList: true, subtree: true });
