"""Opens pages in a browser, without a window and without a network."""

from contextlib import contextmanager

QUIET = (
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--no-sandbox"),
)
"""It asks nobody for anything; and it may be root, as in a container."""

LISTENER = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.sourceFile ?? ""}`));
"""
"""Notes what the page's own policy has forbidden."""


@contextmanager
def headless(path):
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*QUIET])
        yield browser
        browser.close()


class Opened:
    """A page as a person opens it from the disk, and what it complains of."""

    def __init__(self, browser, file, **settings):
        settings = {"viewport": {"width": 1200, "height": 800}} | settings
        self.context = browser.new_context(offline=True, **settings)
        self.context.add_init_script(LISTENER)
        self.page = self.context.new_page()
        self.complaints = []
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._note_request)
        self.url = file.resolve().as_uri()
        self.page.goto(self.url)

    def _note_request(self, request):
        if request.url != self.url:
            self.complaints.append(f"request of {request.url}")

    @property
    def violations(self):
        """What the policy has forbidden."""
        return self.page.evaluate("window.violations")

    def barriers(self):
        """What axe finds that keeps people out."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [(rule["id"], node["html"]) for rule in found for node in rule["nodes"]]
