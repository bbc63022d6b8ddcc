"""Fixtures, and the markers of tests that need what not every computer has."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from flare.measuring.engines import docker as engine_module
from tests.builders import ROOT, case_names, organ_boxes, write_cases
from tests.builders.alone import alone
from tests.builders.browser import headless
from tests.builders.engine import IMAGE, built, call
from tests.builders.teams import BASE, PYTHON_BASE, make_base, make_python_base
from tests.fakes.engine import ScriptedEngine, python_engine, state_of

SHARED = ROOT.parent / "shared"
MARKERS = ("browser", "docker", "shared", "tools", "docs")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


with suppress(ModuleNotFoundError):  # where the documentation alone is tested
    from hypothesis import HealthCheck, settings

    # A busy computer fails no test of a property; what is drawn stays as it is.
    settings.register_profile(
        "unhurried",
        settings.default,
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.function_scoped_fixture,
        ],
    )
    settings.load_profile("unhurried")


def pytest_addoption(parser):
    parser.addoption(
        "--require",
        action="append",
        default=[],
        choices=MARKERS,
        help="fail, instead of skipping, tests with this marker",
    )
    parser.addoption(
        "--update-messages", action="store_true", help="write tests/messages.txt anew"
    )


def pytest_configure():
    """Let Ctrl-C reach what tests start, also where they run in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with what needs an engine, which others can run beside: it mostly waits."""
    items.sort(key=lambda item: not item.get_closest_marker("docker"))


def pytest_collectstart():
    """Look for no garbage among all tests and modules, which takes a tenth of a run."""
    gc.disable()


def pytest_collection_finish():
    """From here on, look for what tests leave."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skip a test whose programs, or Python packages, are not here."""
    for marker in item.iter_markers("tools"):
        for name in marker.args:
            need_tool(item, name)
        if "package" in marker.kwargs:
            need_package(item, marker.kwargs["package"])
    if item.get_closest_marker("docs"):
        for name in ("mkdocs", "codespell_lib", "playwright"):
            need_package(item, name, "docs")


def need_tool(request, name, marker="tools"):
    """The path of a program that not every computer has."""
    path = shutil.which(name)
    if not path:
        _skip_or_fail(request, marker, f"there is no program {name}")
    return path


def need_package(request, name, marker="tools"):
    """See that there is a Python package that not every computer has."""
    if not importlib.util.find_spec(name):
        _skip_or_fail(request, marker, f"{name} is not installed")


def _skip_or_fail(request, marker, reason):
    """Skip a test for a reason, unless its marker is required."""
    if marker in request.config.getoption("--require"):
        pytest.fail(f"--require {marker}: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared(request) -> Path:
    """The folder of label maps with official values."""
    if not (SHARED / "data").is_dir():
        _skip_or_fail(request, "shared", "the shared label maps are not here")
    return SHARED


@pytest.fixture(scope="session")
def page_browser_path(request) -> str:
    """The path of a browser, for the pages of reports."""
    need_package(request, "playwright", "browser")
    need_package(request, "axe_playwright_python", "browser")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not path:
        _skip_or_fail(request, "browser", f"there is none of {', '.join(BROWSERS)}")
    return path


@pytest.fixture(scope="session")
def page_browser(page_browser_path):
    """A browser without any network, for the pages of reports."""
    with headless(page_browser_path) as browser:
        yield browser


@pytest.fixture(scope="session")
def docker(request) -> str:
    """A container engine that answers."""
    try:
        subprocess.run(["docker", "info"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        _skip_or_fail(request, "docker", "no Docker engine answers")
    return "docker"


@pytest.fixture(scope="session")
def image(docker):
    """The image of the bundled demonstration set."""
    call("./flare.sh", "challenge", "list")  # makes what rehearse.sh needs, once
    with built(IMAGE) as name:
        yield name


@pytest.fixture
def page_cache():
    """What files have left in the memory of the computer: nobody else empties it."""
    with alone("caches"):
        yield


@pytest.fixture
def engine_disk():
    """The disk of the engine: nobody else puts large images on it, or removes them."""
    with alone("disk"):
        yield


@pytest.fixture(scope="session")
def team_base(docker):
    """The image that all images of teams start from."""
    make_base()
    yield BASE
    call(docker, "image", "rm", "--force", BASE)


@pytest.fixture(scope="session")
def python_base(docker):
    """The image that images of examples/teams start from: a small one with Python."""
    make_python_base()
    yield PYTHON_BASE
    call(docker, "image", "rm", "--force", PYTHON_BASE)


@pytest.fixture(scope="session")
def case_data(tmp_path_factory) -> Path:
    """Images, which are label maps here, and labels of three cases."""
    return _cases(tmp_path_factory.mktemp("data"), case_names(3))


@pytest.fixture(scope="session")
def two_cases(tmp_path_factory) -> Path:
    """Images, and labels, of two cases: what the first one leaves, the second meets.

    More of them tell no more of a real container, which takes seconds for each.
    """
    return _cases(tmp_path_factory.mktemp("two-cases"), case_names(2))


@pytest.fixture(scope="session")
def one_case(tmp_path_factory) -> Path:
    """An image, and labels, of one case, where another one tells nothing more."""
    return _cases(tmp_path_factory.mktemp("one-case"), case_names(1))


def _cases(folder, names):
    """Labels of some cases, and images that are the same."""
    write_cases(folder / "labels", names)
    write_cases(folder / "images", [f"{case}_0000" for case in names])
    return folder


@pytest.fixture
def ground_truth(tmp_path):
    """References of three cases."""
    return write_cases(tmp_path / "ground-truth", case_names(3))


@pytest.fixture
def predictions(tmp_path):
    """Predictions of the same three cases, whose liver lies one voxel too far."""
    folder = tmp_path / "predictions"
    return write_cases(folder, case_names(3), labels=organ_boxes(shift=1))


@pytest.fixture
def output(tmp_path):
    """Where metrics.json goes; not made yet."""
    return tmp_path / "output"


@pytest.fixture
def quick_commands(monkeypatch):
    """Let commands of an engine begin quickly: they need not end when we are killed.

    Where something has to be done in a child process before its program, the whole of
    this process is copied first, which takes ten times as long.
    """
    monkeypatch.setattr(engine_module, "_end_with_us", lambda: None)


@pytest.fixture
def make_engine(tmp_path, quick_commands):
    """Make an engine that is told what to say by some lines of Python."""

    def make(*lines):
        return python_engine(tmp_path, *lines)

    make.state = lambda: state_of(tmp_path)
    return make


@pytest.fixture
def scripted_engine(tmp_path, monkeypatch, quick_commands):
    """An engine that plays by a script, and is what `docker` means meanwhile."""
    found = ScriptedEngine(tmp_path / "engine")
    monkeypatch.setenv("PATH", str(found.home), prepend=os.pathsep)
    return found


@pytest.fixture(scope="session")
def certificate(request, tmp_path_factory):
    """A certificate of localhost, and its key."""
    need_tool(request, "openssl")
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    words += ["-keyout", file, "-out", file.with_suffix(".crt")]
    subprocess.run(words, check=True, capture_output=True)
    return file


@pytest.fixture
def external_platform(certificate, monkeypatch):
    """A platform of which a phase has external evaluation."""
    from tests.fakes.platform import FakePlatform, running  # few tests need it

    server = FakePlatform(certificate)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    with running(server):
        yield server
