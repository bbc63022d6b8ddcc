"""What is wrong with a submission, or with the reference labels."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from flare.common.errors import (
    FileError,
    HostError,
    OrganiserError,
    SubmissionError,
)
from flare.common.text import listing, safe


class NothingToScoreError(SubmissionError):
    """There is no label map in the submission at all."""

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
    """Cases were submitted more than once."""

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
    """Files have names that are nearly those of cases."""

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
    """Files belong to no case of the challenge."""

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
        self, files: Sequence[str], example: str, labels: Sequence[tuple[str, int]]
    ) -> None:
        super().__init__(files, example)
        self.labels = tuple(labels)
        self.finding = f"{listing(files)}: each is one organ of a case"
        known = listing((f"{number} {name}" for name, number in labels), last=" and ")
        self.remedy = (
            "Merge the organs of each case into one label map, such as"
            f" {safe(example)}, with the labels 0 background, {known}."
        )


class FolderError(SubmissionError):
    """A submission has folders in folders, or files, without an end."""

    code = "F16"
    remedy = "Zip the label maps alone, one for each case."

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.finding = problem


class MissingCasesError(SubmissionError):
    """Cases were not submitted."""

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


class FileFormatError(FileError):
    """The file is no label map that can be read."""

    code = "F06"
    remedy = "Save the label map as .nii.gz with SimpleITK or nibabel."


class GridSizeError(FileError):
    """The prediction has other numbers of voxels than the reference."""

    code = "F07"
    remedy = "Write the label map on the grid of the input CT: pad it, or resample it."


class GridPositionError(FileError):
    """The prediction lies elsewhere than the reference."""

    code = "F08"
    remedy = (
        "If the voxels are those of the input CT, copy its header;"
        " otherwise resample to its grid with nearest neighbours."
    )


class DamagedFileError(FileError):
    """The file is not whole."""

    code = "F09"
    remedy = (
        "Check your own copy (gzip -t); write it anew if it is damaged, then zip and"
        " submit all files again."
    )


class FractionError(FileError):
    """There are voxels that are no whole numbers."""

    code = "F10"
    remedy = (
        "If you saved probabilities, take their argmax; if you resampled labels, use"
        " nearest neighbours; then save as uint8. Rounding alone gives wrong labels."
    )


class LabelError(FileError):
    """There are labels that the challenge does not know."""

    code = "F11"

    def __init__(self, file: str, problem: str, known: str) -> None:
        super().__init__(file, problem)
        self.known = known
        self.remedy = f"Use {known}; map other labels to one of these, or to 0."


class JobError(FileError):
    """The platform's run of an algorithm on a case has no output to score."""

    code = "F13"
    remedy = (
        "The algorithm has to write one image for every case: try it out on the"
        " platform, and ask the organisers for the log of the job."
    )


class JobsFileError(SubmissionError):
    """predictions.json is not the list of jobs that the platform writes."""

    code = "F14"
    remedy = (
        "If it is a file of yours, remove it from the zip: the name is the platform's."
    )

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.finding = f"predictions.json: {problem}"


class EmptyError(SubmissionError):
    """No prediction has any organ: scored, it would use up a submission."""

    code = "F12"
    remedy = (
        "Print numpy.unique of an array before you save it: if it has labels, saving"
        " lost them; if not, look at what the model gets to see."
    )

    def __init__(self, cases: int) -> None:
        self.cases = cases
        which = "The only label map is" if cases == 1 else f"All {cases} label maps are"
        self.finding = f"{which} empty: every voxel is background"


class GroundTruthError(OrganiserError):
    """The reference labels are missing, damaged or contradictory."""

    code = "G02"
    remedy = "The organisers have to repair this; the submission is not at fault."

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.finding = f"Reference labels: {problem}"


class DemonstrationSetError(OrganiserError):
    """The organisers have not put their reference labels in yet."""

    code = "G03"
    finding = (
        "The organisers have not supplied their reference labels yet: this evaluation"
        " holds only its demonstration set"
    )
    remedy = "This is not the submission's fault; please tell the organisers."


class PhaseSettingsError(OrganiserError):
    """The settings of a phase on a platform, or a file of them, cannot be used."""

    code = "G04"
    remedy = "Every field is explained in docs/phase-settings.md."

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        self.finding = f"{safe(file)}: {problem}"


class UploadError(HostError):
    """The platform would not take what is to be rehearsed."""

    code = "H06"
    remedy = "Zip the label maps, and rehearse the zip; pack labels with tar -czf."
