"""What is wrong with one file of a submission."""

from __future__ import annotations

from flare.common.errors import FileError


class FileFormatError(FileError):
    """The file is not a label map that can be read.

    The file is in another format (a .tif or .png does not say where its voxels lie), is
    a link, has four dimensions (probabilities: take the argmax over the classes),
    holds colours, or keeps its voxels in a second file (`.mhd`, `.nhdr`, `.hdr` with
    `.img`). Save it as `.nii.gz`:
    `SimpleITK.WriteImage(image, "validation_001.nii.gz")`.

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
      cropped, so put it back into an array of the CT's size.
    """

    code = "F07"
    remedy = "Write the label map on the grid of the input CT: pad it, or resample it."


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


class FractionError(FileError):
    """There are voxels that are not whole numbers.

    Find out which it is:

    - Probabilities (softmax) were saved instead of labels. Take the argmax over the
      axis of the classes, which is the first one in PyTorch:
      `labels = probabilities.argmax(axis=0)`. Casting alone makes zeros of them (F12).
    - Labels were resampled with interpolation: resample with nearest neighbours.
    - Labels were saved with the header of the CT, which scales them: save them as
      `nibabel.Nifti1Image(labels.astype("uint8"), ct.affine)`.
    """

    code = "F10"
    remedy = (
        "If you saved probabilities, take their argmax; if you resampled labels, use"
        " nearest neighbours; then save as uint8. Rounding alone gives wrong labels."
    )


class LabelError(FileError):
    """There are labels that the challenge does not know.

    There are labels that the challenge does not have; if they are those of another
    FLARE edition, the message says of which. Map them to the ones in the message, and
    set all others to 0.
    """

    code = "F11"

    def __init__(self, file: str, problem: str, known: str) -> None:
        super().__init__(file, problem)
        self.known = known
        self.remedy = f"Use {known}; map other labels to one of these, or to 0."


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
