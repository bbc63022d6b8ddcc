"""Runs the notebook of the documentation, and makes a page of it."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from mkdocs.exceptions import PluginError
from nbclient.exceptions import CellExecutionError
from nbconvert.exporters import MarkdownExporter
from nbconvert.preprocessors import ExecutePreprocessor

TIMEOUT_S = 300
"""For a cell; all together take some ten seconds."""


def notebook_files(file: Path, folder: Path) -> dict[str, str | bytes]:
    """The page of a notebook that is run in a folder, and the pictures it draws.

    Raises
    ------
    PluginError
        If a cell fails, or draws a picture without an ``alt`` in its metadata: which
        ends the build.
    """
    notebook = nbformat.read(file, as_version=4)
    try:
        _run(notebook, folder)
    except CellExecutionError as error:
        message = f"{file.name}: a cell fails: {error.ename}: {error.evalue}"
        raise PluginError(message) from error
    markdown, found = MarkdownExporter().from_notebook_node(notebook)

    def picture(match: re.Match[str]) -> str:
        cell = notebook.cells[int(match["cell"])]
        if "alt" not in cell.metadata:
            line = cell.source.splitlines()[-1]
            message = f"{file.name}: no alt in the metadata of the cell with {line}"
            raise PluginError(message)
        return f"![{cell.metadata['alt']}]({match['name']})"

    name = r"(?P<name>output_(?P<cell>\d+)_\d+\.png)"
    markdown = re.sub(rf"!\[png\]\({name}\)", picture, _plain_tables(markdown))
    heading, _, rest = markdown.partition("\n")
    download = f"[Download this notebook]({file.name}){{ download={file.name} }}"
    pages = {file.with_suffix(".md").name: f"{heading}\n\n{download}\n{rest}"}
    return pages | found["outputs"]


def _run(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Put into a notebook what its cells show."""
    with TemporaryDirectory() as sockets:
        kernel = KernelManager(
            kernel_name="python3",
            # This Python, whatever kernels the user has installed.
            kernel_spec_manager=KernelSpecManager(
                kernel_dirs=[], ensure_native_kernel=True
            ),
            transport="ipc",
            connection_file=f"{sockets}/kernel.json",
        )
        try:
            ExecutePreprocessor(timeout=TIMEOUT_S).preprocess(
                notebook, {"metadata": {"path": str(folder)}}, km=kernel
            )
        finally:
            kernel.shutdown_kernel(now=True)


def _plain_tables(markdown: str) -> str:
    """Tables of pandas without their looks: the site has its own, for both palettes."""
    markdown = re.sub(r"<style scoped>.*?</style>\s*", "", markdown, flags=re.DOTALL)
    markdown = markdown.replace(' border="1" class="dataframe"', "")
    return re.sub(r"<thead>.*?</thead>", _one_row, markdown, flags=re.DOTALL)


def _one_row(match: re.Match[str]) -> str:
    """The head of a table, whose index has its name in a row of its own, in one row."""
    rows = [re.findall("<th>(.*?)</th>", row) for row in match[0].split("</tr>")[:-1]]
    cells = (f"<th>{''.join(column)}</th>" for column in zip(*rows, strict=True))
    return f"<thead><tr>{''.join(cells)}</tr></thead>"
