"""Pages of the documentation that are made when it is built.

Of the program itself, of files of the top level, and of the notebook, which is run.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from docs_editions import editions_table
from docs_examples import example_files
from docs_files import files_page
from docs_methods import METHOD_PARTS
from docs_notebook import notebook_files
from make_schemas import schemas
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from flare.cli import main
from flare.cli.commands.explain import explanations

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "flare"
ROOMS = (
    *("common", "challenge", "statistics", "results", "answers", "evaluation"),
    *("ranking", "measuring", "platforms", "reports", "cli"),
)
"""From the bottom to the top, as CONTRIBUTING has them."""
KINDS = (".py", ".toml", ".json", ".sh")
NOTEBOOK = "python/notebook.ipynb"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to those that are written by hand."""
    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    for name, text in schemas().items():
        place = f"reference/schemas/{name}"
        files.append(File.generated(config, place, content=text))
    for name, content in example_files(ROOT):
        files.append(File.generated(config, name, content=content))
    for name, content in notebook_files(ROOT / "docs" / NOTEBOOK, ROOT).items():
        path = str(Path(NOTEBOOK).with_name(name))
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put what is made of the program in the place of its comment."""
    for name, text in METHOD_PARTS.items():
        markdown = markdown.replace(name, text)
    for name, make in PARTS.items():
        if name in markdown:
            markdown = markdown.replace(name, make())
    return markdown


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Let a table have no empty heading, and docstrings references without numpydoc."""
    html = re.sub(r"<th[^>]*></th>", "<td></td>", html)
    if page.file.src_uri == "python/index.md":
        return re.sub(r"\[(\d+)\]_", r"[\1]", html).replace(".. [", "[")
    return html


def on_post_page(output: str, **_: Any) -> str:
    """Name for a screen reader what the theme leaves without a name."""
    output = output.replace('role="dialog"', 'role="dialog" aria-label="Search"')
    return re.sub(
        r'aria-labelledby="(__nav_\d+)_label"'
        r'(?=[^>]*>\s*<label class="md-nav__title" for="\1">\s*<span[^>]*></span>\s*'
        r"(\w[^<]*?)\s*</label>)",
        r'aria-label="\2"',
        output,
    )


def messages() -> str:
    """All messages, each with an anchor that is its code."""
    sections = []
    for code, text in explanations().items():
        body = re.sub(
            r"`docs/([\w./-]+)\.md`",
            lambda m: f"[{_title(m[1])}](../{m[1]}.md)",
            text,
        )
        body = re.sub(
            r"(?<!\[)\b([FGHX]\d\d)\b(?!\])",
            lambda m: m[0] if m[1] == code else f"[{m[1]}](#{m[1]})",  # noqa: B023
            body,
        )
        title, _, body = body.partition("\n")
        sections.append(f"## {code}: {title} {{#{code}}}\n{body}\n")
    return "\n".join(sections)


def commands() -> str:
    """Every command with its options, as the program knows them."""
    parts = [
        "# Commands\n\n`flare` is `./flare.sh` in a checkout, and the command that"
        " installing makes. Every command has `--help`. An exit status of 0 means that"
        " all went well, 1 that something is wrong, which a line on stderr says, and 2"
        " that the command was called wrongly.\n"
    ]
    for group, names in main.commands().items():
        parts.append(f"## {group}\n")
        for name in names:
            parts += _command(("flare", name), main.load(name), "###")
    return "\n".join(parts)


def _command(
    path: tuple[str, ...], command: click.Command, level: str
) -> Iterator[str]:
    """The section of a command, and of those within it."""
    context = click.Context(command, info_name=" ".join(path))
    words = " ".join(path[1:])
    yield f"{level} {words} {{#{'-'.join(path[1:])}}}\n"
    yield f"{command.help or ''}\n"
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n"
    rows = [_row(param, context) for param in command.get_params(context)]
    if rows:
        yield "| Argument or option | What it does |\n|---|---|"
        yield "\n".join(rows) + "\n"
    for name, child in getattr(command, "commands", {}).items():
        yield from _command((*path, name), child, level + "#")


def _row(param: click.Parameter, context: click.Context) -> str:
    """The row of an argument or option."""
    record = param.get_help_record(context)
    if record is None:  # an argument without a help of its own
        record = param.make_metavar(context), ""
    name, text = (part.replace("|", "&#124;") for part in record)
    return f"| <code>{_escaped(name)}</code> | {_escaped(text)} |"


def _escaped(text: str) -> str:
    """A text in which nothing is taken for HTML or Markdown."""
    return re.sub(r"([<>*_\[\]])", r"\\\1", " ".join(text.split()))


def rooms() -> str:
    """Each room with its folders and files, and the first line of each."""
    parts = []
    for room in ROOMS:
        folders = [PACKAGE / room, *sorted((PACKAGE / room).rglob("*/"))]
        for folder in folders:
            if folder.name == "template":  # its files are written for others
                continue
            files = [file for file in sorted(folder.iterdir()) if file.suffix in KINDS]
            if files:
                level = "###" if folder == folders[0] else "####"
                parts += _folder(level, folder, files)
    return "\n".join(parts)


def _folder(level: str, folder: Path, files: Sequence[Path]) -> Iterator[str]:
    """The section of a folder."""
    yield f"{level} {folder.relative_to(ROOT)}\n"
    if (folder / "__init__.py").exists():
        yield f"{_first_line(folder / '__init__.py')}\n"
    rows = [
        f"| `{file.name}` | {_escaped(_first_line(file))} |"
        for file in files
        if file.name != "__init__.py"
    ]
    if rows:
        yield "| File | What it is for |\n|---|---|\n" + "\n".join(rows) + "\n"


def _first_line(file: Path) -> str:
    """What a file says of itself: in its docstring, its comment or its description."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    if file.suffix == ".json":
        return str(json.loads(text)["description"]).partition(". ")[0].rstrip(".") + "."
    comments = [line[2:] for line in text.splitlines() if line.startswith("# ")]
    return comments[0].partition(". ")[0].rstrip(".") + "."


def _at_the_top(name: str, up: str = "../") -> str:
    """A file of the top level, whose links are those of the site."""
    try:
        text = (ROOT / name).read_text(encoding="utf-8")
    except OSError as error:
        message = f"{name}: cannot be read ({error.strerror})"
        raise PluginError(message) from error
    text = text.replace("](.github/SECURITY.md", "](docs/security.md")
    return re.sub(r"\]\((\.\./)?docs/", f"]({up}", text)


def _title(name: str) -> str:
    """The title of a page."""
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    return text.partition("# ")[2].partition("\n")[0]


PAGES: dict[str, Callable[[], str]] = {
    "reference/files.md": files_page,
    "reference/commands.md": commands,
    "security.md": lambda: _at_the_top(".github/SECURITY.md", ""),
    "developers/contributing.md": lambda: _at_the_top(".github/CONTRIBUTING.md"),
    "developers/changelog.md": lambda: _at_the_top("CHANGELOG.md"),
}

PARTS: dict[str, Callable[[], str]] = {
    "<!-- editions -->": editions_table,
    "<!-- messages -->": messages,
    "<!-- rooms -->": rooms,
}
"""What stands for a part of a page that is written by hand."""
