"""What is wrong with a submission, one of its files, or what organisers put in."""

from __future__ import annotations

from collections.abc import Sequence

from flare.challenge.answers import KINDS
from flare.common.errors import (
    AboutFile,
    FileError,
    HostError,
    OrganiserError,
    SubmissionError,
)
from flare.common.text import listing, safe


class NothingToScoreError(SubmissionError):
    """There is no label map in the submission at all.

    The zip has no label map: it is empty, holds another zip, or a table. Open it and
    look: there must be one file for each case, not an archive within the archive.
    """

    code = "F01"

    def __init__(self, names: Sequence[str], example: str, what: str = "") -> None:
        self.names = tuple(names)
        holds = f"found {listing(names)}" if names else "it is empty"
        self.finding = f"The submission holds no label map ({holds})"
        if what:
            self.finding = f"{listing(names)}: {what}, and no label map is beside it"
        zip_them = "Zip the .nii.gz files themselves, one for each case"
        self.remedy = f"{zip_them}, such as {safe(example)}."


class DuplicateCasesError(SubmissionError):
    """Cases were submitted more than once.

    Two files have the same name in different folders, or different extensions. Often an
    older folder was zipped along: keep one. If there is a folder for each organ, merge
    the files of a case into one label map.
    """

    code = "F02"
    remedy = "Keep one file for each case, with all its organs."

    def __init__(self, duplicates: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        self.duplicates = tuple(duplicates)
        case, files = duplicates[0]
        self.finding = f"{listing(files)}: {len(files)} files for case {safe(case)}"
        if len(duplicates) > 1:
            cases = listing(case for case, _ in duplicates[1:])
            self.finding += f", likewise for {cases}"


class MisnamedCasesError(SubmissionError):
    """Files have names that are nearly those of cases.

    The message names the case that was probably meant. Rename the file as it says,
    without `_0000` or a suffix of your own. Where the names in a zip begin with `/`,
    the platform cuts off the letter behind it: zip the files from within their folder.
    """

    code = "F03"

    def __init__(self, renames: Sequence[tuple[str, str]]) -> None:
        self.renames = tuple(renames)
        _, expected = renames[0]
        names = [_distinct(file, expected) for file, expected in renames]
        self.finding = f"{listing(names)}: no case has this name"
        self.remedy = f"Rename: did you mean {safe(expected)}?"
        if len(renames) > 1:
            self.remedy = f"Rename, such as {safe(names[0])} to {safe(expected)}."
        if all(file == expected[1:] for file, expected in renames):
            self.remedy = (
                f"{self.remedy} If they are called so in the zip, its names begin with"
                " /, and the platform cuts off a letter: zip them from within their"
                " folder."
            )


def _distinct(name: str, expected: str) -> str:
    """A name, in which letters are seen that only look like those of the expected."""
    folder, slash, file_name = name.rpartition("/")
    if expected.isascii():
        file_name = file_name.encode("ascii", "backslashreplace").decode()
    return f"{folder}{slash}{file_name}"


class UnexpectedCasesError(SubmissionError):
    """Files belong to no case of the challenge.

    A file belongs to no case of this phase: a CT, or a case of another phase. Remove
    it. If one file holds all cases, split it. If the numbering is off by one, every
    file has the name of its neighbour: name all of them anew. If there is a file for
    each organ of a case, such as `CASE_liver.nii.gz` or `CASE/liver.nii.gz`, merge them
    into one label map; do not rename them, for each would count as the whole case.
    """

    code = "F04"

    def __init__(self, files: Sequence[str], example: str) -> None:
        self.files = tuple(files)
        self.finding = f"{listing(files)}: no case has this name"
        self.remedy = (
            f"Submit one label map for each case, such as {safe(example)}, with all its"
            " organs, and remove others."
        )


class FolderError(SubmissionError):
    """A submission has endless folders or files.

    The submission holds a million files, folders deeper than 200, or a path longer than
    4,000 bytes: a program went astray. Zip the label maps alone, one for each case.
    """

    code = "F16"
    remedy = "Zip the label maps alone, one for each case."


class MissingCasesError(SubmissionError):
    """Cases are missing.

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
        count = f"{len(missing)} of {expected} cases"
        self.finding = f"Missing {count}: {listing(missing)}"
        if unopened:
            self.finding += f" (archives are not opened: {listing(unopened)})"
        files = f"all {expected} files" if expected > 1 else "the file"
        self.remedy = f"Submit {files} in one zip."
        if is_algorithm:
            failed = "The algorithm was not run on them, or failed"
            self.remedy = f"{failed}: please ask the organisers."


class JobsFileError(SubmissionError):
    """predictions.json is not the list of jobs that the platform writes.

    The platform writes a file of this name when it runs algorithms, and says so in its
    inputs.json. If your zip has one of its own, remove it. Answers are read from the
    files that the challenge names, and never from the outputs of jobs.
    """

    code = "F14"
    remedy = (
        "If it is a file of yours, remove it from the zip: the name is the platform's."
    )

    subject = "predictions.json: "


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
        which = "The only label map is" if cases == 1 else f"All {cases} label maps are"
        self.finding = f"{which} empty: every voxel is background"


class FileFormatError(FileError):
    """The file is not a label map that can be read.

    The file is in another format (a .tif or .png does not say where its voxels lie), is
    a link, has four dimensions (probabilities: take the argmax over the classes),
    holds colours, or keeps its voxels in a second file (`.mhd`, `.nhdr`, `.hdr` with
    `.img`). Save it as `.nii.gz`:
    `SimpleITK.WriteImage(image, "validation_001.nii.gz")`. An archive within the zip is
    not opened: zip the label maps themselves.

    NumPy's `.npz` files are read only where the challenge says what is in them, as for
    the tasks from RECIST to 3-D of FLARE 2025 and 2026. The labels have to be numbers
    in C order, beside the array `spacing`:
    `numpy.savez_compressed(file, segs=labels.astype("uint8"), spacing=spacing)`.
    """

    code = "F06"
    remedy = "Save the label map as .nii.gz with SimpleITK or nibabel."


class GridSizeError(FileError):
    """The prediction has a different size from the reference.

    The numbers of voxels are not those of the CT. Compare the two sizes in the message:

    - The same numbers in reverse order: the axes are reversed, because SimpleITK's
      arrays are (z, y, x), and nibabel's are (x, y, z). Save `array.T`.
    - The same numbers in another order: two axes were swapped, or the image was turned
      before it was predicted. Undo what your preprocessing did. Sizes are x, y, z: if y
      and z are swapped, `array.transpose(0, 2, 1)` swaps them back in nibabel, and
      `array.transpose(1, 0, 2)` in SimpleITK. Save it with the header of the CT, and
      look at it over the CT: an axis may be mirrored, too.
    - Other numbers: it was resampled, so resample it to the CT (see F08), or it was
      cropped, so put it back into an array of the CT's size. 3D Slicer may crop to the
      segments unless the CT is the reference volume of the export.

    Of cases whose labels you have, `flare doctor` finds the cause; `--fix` mends it.
    """

    code = "F07"
    remedy = (
        "Write the label map on the grid of the input CT: pad it, resample it, or turn"
        " its axes."
    )


class GridPositionError(FileError):
    """The prediction lies at another position than the reference.

    The size is right, the position is not: the header was lost, mirrored or rotated.

    - If the array has the CT's order of voxels, copy the CT's header:
      `mask.CopyInformation(ct)` in SimpleITK,
      `nibabel.Nifti1Image(array.astype("uint8"), ct.affine)` in nibabel.
    - If the voxels were turned or resampled too, resample the label map to the CT:
      `SimpleITK.Resample(mask, ct, SimpleITK.Transform(),
      SimpleITK.sitkNearestNeighbor)` in SimpleITK,
      `nibabel.processing.resample_from_to(mask, ct, order=0)` in nibabel.

    Positions are given in nibabel's signs (RAS: to the right, front and top); SimpleITK
    shows the first two numbers of an origin with the opposite sign.

    Of cases whose labels you have, `flare doctor` finds the cause; `--fix` mends it.
    """

    code = "F08"
    remedy = (
        "If the voxels are those of the input CT, copy its header;"
        " otherwise resample to its grid with nearest neighbours."
    )


class DamagedFileError(FileError):
    """The file is not whole.

    The compressed data end early or do not fit their checksum: the file was cut off or
    changed after it was written, by a full disk or an interrupted copy. Most readers do
    not notice. Write it again.
    """

    code = "F09"
    remedy = (
        "Check your own copy (gzip -t); write it anew if it is damaged, then zip and"
        " submit all files again."
    )


ROUND = (
    "These are labels that were scaled or computed with: round them, and save them as"
    ' nibabel.Nifti1Image(numpy.rint(labels).astype("uint8"), ct.affine).'
)
"""The remedy for values that are whole numbers but for 1 %."""


class FractionError(FileError):
    """There are voxels that are not whole numbers.

    Find out which it is:

    - Probabilities (softmax) were saved instead of labels. Take the argmax over the
      axis of the classes, which is the first one in PyTorch:
      `labels = probabilities.argmax(axis=0)`. Casting alone makes zeros of them (F12).
    - Labels were resampled with interpolation, as SciPy's zoom does by itself, which
      mixes neighbouring labels: resample them anew with nearest neighbours.
    - Labels were saved with the header of the CT, which scales them to 1.00002 or
      1.00392: round them, and save them as
      `nibabel.Nifti1Image(numpy.rint(labels).astype("uint8"), ct.affine)`.

    Of cases whose labels you have, `flare doctor` finds the cause; `--fix` mends it.
    """

    code = "F10"
    remedy = (
        "If you saved probabilities, take their argmax; if you resampled labels, use"
        " nearest neighbours (SciPy: order=0); then save as uint8. Rounding alone gives"
        " wrong labels."
    )


class LabelError(FileError):
    """There are labels that the challenge does not know.

    There are labels that the challenge does not have; if they are those of another
    FLARE edition, the message says of which. Map them to the ones in the message, and
    set all others to 0.

    Of cases whose labels you have, `flare doctor` finds the cause; `--fix` mends it.
    """

    code = "F11"

    def __init__(self, file: str, problem: str, known_labels: str) -> None:
        super().__init__(file, problem)
        self.remedy = f"Use {known_labels}; map other labels to one of these, or to 0."


class AnswerFileError(FileError):
    """A file of answers is missing, or is not the table that was asked for.

    The message says which it is. A table (.csv) has commas between its columns, decimal
    points in its numbers, the names of the columns in its first line, and is written in
    UTF-8, as by `frame.to_csv(file, index=False)`. A .json file is a list of objects, a
    .jsonl file has an object on each line, as by `json.dump`. A file has at most 16
    MiB, 200,000 rows and 10,000 columns, and no column or key twice. `flare challenge
    validate FILE` prints the names of files and columns.
    """

    code = "F20"

    def __init__(self, file: str, problem: str, columns: Sequence[str]) -> None:
        super().__init__(file, problem)
        self.columns = tuple(columns)
        parts = "columns" if file.endswith(".csv") else "keys"
        self.remedy = (
            f"Submit one file {safe(file)} with the {parts} {listing(columns)}."
        )


class AnswerCasesError(AboutFile, SubmissionError):
    """Answers are missing, are there twice, or are of no case.

    Every case needs one answer, also where you are not sure: nothing is left out of the
    mean. Two rows of one case may be the same: keep one. Names of cases are compared
    without `.nii.gz` and `_0000`, in any order of rows.
    """

    code = "F21"
    remedy = "Write one answer for each case, and none for others."


class AnswerValueError(AboutFile, SubmissionError):
    """Answers are not what was asked for.

    The message names lines, cases and what is written there, and says what an answer
    has to be: probabilities from 0 to 1 (not percentages, not logits), numbers with a
    decimal point, up to 1e14 and without NaN or infinity, a letter without the words
    behind it (`B` for `B: Myelofibrosis`), boxes as lists of four numbers, 2,000 of a
    case at most.
    """

    code = "F22"

    def __init__(self, file: str, problem: str, answers: str, kind: str) -> None:
        super().__init__(file, problem)
        self.answers, self.kind = answers, kind
        self.remedy = f"Each answer to {answers} has to be {KINDS[kind].about}."


class JobError(FileError):
    """The platform's run of an algorithm on a case has no output to score.

    For algorithm submissions: the platform ran the algorithm on a case, and there is no
    single image to score. The algorithm has to write one .mha for every case. Try it
    out on the platform; organisers can share the log of the job.
    """

    code = "F13"
    remedy = (
        "The algorithm has to write one image for every case: try it out on the"
        " platform, and ask the organisers for the log of the job."
    )


class GroundTruthError(OrganiserError):
    """The reference labels are missing, damaged or contradictory.

    For organisers; participants are not at fault. The message says which it is. Mend
    it, and run `flare check-references LABELS` until it finds nothing:

    - Missing (there is no label map in their folder, or the image has no such folder):
      name the folder that has the labels. Each is a .nii.gz file, named like its case.
    - Damaged: look with `gzip -t`, and write the file anew, or copy it again.
    - Two files for one case, in two folders or formats: remove one.
    - Labels that the challenge does not know: was `--challenge FILE` forgotten? Else
      name them as organs, or let `[unknown_labels]` ignore them.
    - The demonstration set beside your labels: remove `demo_*.nii.gz`.
    """

    code = "G02"
    remedy = "The organisers have to repair this; the submission is not at fault."

    subject = "Reference labels: "


class DemonstrationSetError(OrganiserError):
    """The organisers have not put their reference labels in yet.

    For organisers: the image was built without your labels, and there is no tarball.
    """

    code = "G03"
    remedy = "This is not the submission's fault; please tell the organisers."

    def __init__(self) -> None:
        super().__init__(
            "The organisers have not supplied their reference labels yet: this"
            " evaluation holds only its demonstration set"
        )


class PhaseSettingsError(AboutFile, OrganiserError):
    """The settings of a phase on a platform, or a file of them, cannot be used.

    For organisers: the file, the field, the value and what is allowed are in the
    message. See `docs/organisers/phase-settings.md`. Of predictions.json:
    `use_batch_mode` is on, or the platform has written it in another form; the
    submission is not at fault.
    """

    code = "G04"
    remedy = "The documentation's page Phase settings explains every field."


class UploadError(HostError):
    """The platform would not take what is to be rehearsed or uploaded.

    In a rehearsal: the platform would not take this file as a submission, this tarball
    as its ground truth, or this bundle. A bundle cannot be made, or would not work
    there: the message has the numbers, and `docs/organisers/codabench.md` the limits.
    """

    code = "H06"
    remedy = "Zip the files, and rehearse the zip; pack labels with tar -czf."


class ClusterError(HostError):
    """The processes that should score or measure cannot be used.

    Dask is not installed, no scheduler answers at the address, a worker has another
    version of this program, or it does not see the files: all machines of a cluster
    need the same folders under the same paths, and no link may lead to what teams have
    sent. To measure, workers have to be started with `--resources GPU=1`, and no more
    of them on a computer than it has lanes.
    """

    code = "H10"
    remedy = "Leave --cluster out to work on this computer alone."
