"""Opens pages in a browser, without a window and without a network."""

from contextlib import contextmanager

QUIET = (
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--no-sandbox"),
)
"""It asks nobody for anything; and it may be root, as in a container."""

WIDE, PHONE = (1200, 800), (360, 740)
"""Sizes of screens, in pixels."""

LISTENER = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.sourceFile ?? ""}`));
"""
"""Notes what the page's own policy has forbidden."""

READY = "body:not(:has(#volume)), .slider:not([hidden])"
"""Nothing is unpacked after the page has loaded, or the viewer of a case has been."""


@contextmanager
def headless(path):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*QUIET])
        yield browser
        browser.close()


class Window:
    """Shows one page after another, as a person opens them from the disk.

    To open a page in a window that is there takes a fifth of what a new window takes.
    """

    def __init__(self, browser, *, has_scripts=True):
        self._context = browser.new_context(
            offline=True, java_script_enabled=has_scripts
        )
        self._context.add_init_script(LISTENER)
        self._has_scripts = has_scripts
        self.page = self._context.new_page()
        self.complaints = []
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._note_request)
        self.url = None

    def open(self, file, *, scheme="light", size=WIDE):
        """Show a page anew, of which nothing has been touched yet."""
        self.show(scheme, size)
        self.page.mouse.move(0, 0)
        self.complaints.clear()
        self.url = file.resolve().as_uri()
        self.page.goto(self.url)
        if self._has_scripts:
            self.page.locator(READY).wait_for(state="attached")

    def show(self, scheme="light", size=WIDE):
        """Show the same page in other colours, or on another screen."""
        self.page.emulate_media(media="screen", color_scheme=scheme)
        self.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._context.close()

    def _note_request(self, request):
        if request.url != self.url:
            self.complaints.append(f"request of {request.url}")

    @property
    def violations(self):
        return self.page.evaluate("window.violations")
