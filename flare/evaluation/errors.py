"""What is wrong with a submission as a whole."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from flare.common.errors import SubmissionError
from flare.common.text import listing, safe


class NothingToScoreError(SubmissionError):
    """There is no label map in the submission at all.

    The zip has no label map: it is empty, holds another zip, or a table. Open it and
    look: there must be one file for each case, not an archive within the archive.
    """

    code = "F01"

    def __init__(self, found: Sequence[str], example: str, what: str = "") -> None:
        self.found = tuple(found)
        self.example = example
        if what:
            self.finding = f"{listing(found)}: {what}, and no label map is beside it"
        else:
            holds = f"found {listing(found)}" if found else "it is empty"
            self.finding = f"The submission holds no label map ({holds})"
        self.remedy = (
            "Zip the .nii.gz files themselves, one for each case, such as"
            f" {safe(example)}."
        )


class DuplicateCasesError(SubmissionError):
    """Cases were submitted more than once.

    Two files have the same name in different folders, or different extensions. Often an
    older folder was zipped along: then the message names the two folders. Keep one.
    """

    code = "F02"
    remedy = "Keep one file for each case."

    def __init__(self, duplicates: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        self.duplicates = tuple(duplicates)
        (case, files), *others = duplicates
        folders = {tuple(str(Path(file).parent) for file in f) for _, f in duplicates}
        if others and len(folders) == 1:
            # Not fifty pairs: the same cases in the same folders.
            names = listing(f"{folder}/" for folder in folders.pop())
            self.finding = (
                f"{names}: these folders hold the same {len(duplicates)} cases"
            )
            self.remedy = "Keep one of the folders."
            return
        self.finding = f"{listing(files)}: {len(files)} files for case {safe(case)}"
        if others:
            self.finding += f", likewise for {listing(case for case, _ in others)}"


class MisnamedCasesError(SubmissionError):
    """Files have names that are nearly those of cases.

    The message names the case that was probably meant. Rename the file: the name of the
    case and `.nii.gz`, without `_0000` or a suffix of your own. If the numbering is off
    by one, every file has the name of its neighbour: name all of them anew.
    """

    code = "F03"

    def __init__(
        self, renames: Sequence[tuple[str, str]], is_off_by_one: bool = False
    ) -> None:
        self.renames = tuple(renames)
        if is_off_by_one:
            extra, missing = (safe(name) for name in renames[0])
            self.finding = f"{extra}: no case has this name, and {missing} is missing"
            self.remedy = (
                "If the numbering is off by one, rename every file, not only this one:"
                " each takes the name of its CT."
            )
            return
        (_, expected), *others = renames
        names = [_distinct(file, expected) for file, expected in renames]
        self.finding = f"{listing(names)}: no case has this name"
        self.remedy = f"Rename: did you mean {safe(expected)}?"
        if others:
            self.remedy = f"Rename, such as {safe(names[0])} to {safe(expected)}."


def _distinct(name: str, expected: str) -> str:
    """A name, in which letters of other scripts are seen if the expected has none."""
    if not expected.isascii():
        return name
    return name.encode("ascii", "backslashreplace").decode() if _looks(name) else name


def _looks(name: str) -> bool:
    """Whether a name has Greek or Cyrillic letters, which may look like Latin ones."""
    scripts = (unicodedata.name(char, "").split(" ")[0] for char in name)
    return not {"GREEK", "CYRILLIC"}.isdisjoint(scripts)


class UnexpectedCasesError(SubmissionError):
    """Files belong to no case of the challenge.

    A file belongs to no case of this phase: a CT, or a case of another phase. Remove
    it. If one file holds all cases, split it. If there is a file for each organ of a
    case, such as `CASE_liver.nii.gz` or `CASE/liver.nii.gz`, merge them into one label
    map with the labels that the message lists; do not rename them, for each would count
    as the whole case.
    """

    code = "F04"

    def __init__(self, files: Sequence[str], example: str, cases: int = 0) -> None:
        self.files = tuple(files)
        self.example = example
        if cases:  # the only file of a submission that should have more
            self.finding = f"{listing(files)}: one file for {cases} cases"
            self.remedy = f"Submit a file for each case, such as {safe(example)}."
        else:
            self.finding = f"{listing(files)}: no case has this name"
            self.remedy = f"Remove, or name like the cases, such as {safe(example)}."


class OrganFilesError(UnexpectedCasesError):
    """There is a file for each organ of a case instead of one label map."""

    def __init__(
        self,
        files: Sequence[str],
        example: str,
        labels: Sequence[tuple[str, int]],
        cases: Sequence[str] = (),
    ) -> None:
        super().__init__(files, example)
        self.labels, self.cases = tuple(labels), tuple(cases)
        self.finding = f"{listing(files)}: each is one organ of a case"
        known = listing((f"{number} {name}" for name, number in labels), last=" and ")
        self.remedy = (
            "Merge the organs of each case into one label map, such as"
            f" {safe(example)}, with the labels 0 background, {known}."
        )


class FolderError(SubmissionError):
    """A submission has endless folders or files.

    The submission holds a million files, folders deeper than 200, or a path longer than
    4,000 bytes: a program went astray. Zip the label maps alone, one for each case.
    """

    code = "F16"
    remedy = "Zip the label maps alone, one for each case."

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.finding = problem


class MissingCasesError(SubmissionError):
    """Cases were not submitted.

    The message says "Missing 3 of 50 cases", and which. Every case needs a file, also
    one in which nothing was found: submit a label map of zeros,
    `nibabel.Nifti1Image(numpy.zeros(ct.shape, "uint8"), ct.affine)`.
    """

    code = "F05"

    def __init__(
        self,
        missing: Sequence[str],
        expected: int,
        unopened: Sequence[str] = (),
        is_algorithm: bool = False,
    ) -> None:
        self.missing = tuple(missing)
        self.expected = expected
        self.unopened = tuple(unopened)
        count = f"{len(missing)} of {expected} cases"
        self.finding = f"Missing {count}: {listing(missing)}"
        if unopened:
            self.finding += f" (archives are not opened: {listing(unopened)})"
        self.remedy = f"Submit all {expected} files in one zip."
        if is_algorithm:
            self.remedy = (
                "The algorithm was not run on them, or failed: please ask the"
                " organisers."
            )


class JobsFileError(SubmissionError):
    """predictions.json is not the list of jobs that the platform writes.

    The platform writes a file of this name when it runs algorithms, and says so in its
    inputs.json. If your zip has one of its own, remove it.
    """

    code = "F14"
    remedy = (
        "If it is a file of yours, remove it from the zip: the name is the platform's."
    )

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.finding = f"predictions.json: {problem}"


class EmptyError(SubmissionError):
    """No prediction has any organ: scored, it would use up a submission.

    All predictions are background alone. Such a submission would score next to nothing
    and use up an attempt. Print `numpy.unique(array)` before you save: if it has
    labels, saving lost them (probabilities cast to uint8 are all 0); if not, look at
    the model's input.
    """

    code = "F12"
    remedy = (
        "Print numpy.unique of an array before you save it: if it has labels, saving"
        " lost them; if not, look at what the model gets to see."
    )

    def __init__(self, cases: int) -> None:
        self.cases = cases
        which = "The only label map is" if cases == 1 else f"All {cases} label maps are"
        self.finding = f"{which} empty: every voxel is background"
