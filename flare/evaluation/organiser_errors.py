"""What is wrong with what organisers put in: reference labels, phases, uploads."""

from __future__ import annotations

from flare.common.errors import HostError, OrganiserError
from flare.common.text import safe


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

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.finding = f"Reference labels: {problem}"


class DemonstrationSetError(OrganiserError):
    """The organisers have not put their reference labels in yet.

    For organisers: the image was built without your labels, and there is no tarball.
    """

    code = "G03"
    finding = (
        "The organisers have not supplied their reference labels yet: this evaluation"
        " holds only its demonstration set"
    )
    remedy = "This is not the submission's fault; please tell the organisers."


class PhaseSettingsError(OrganiserError):
    """The settings of a phase on a platform, or a file of them, cannot be used.

    For organisers: the file, the field, the value and what is allowed are in the
    message. See `docs/organisers/phase-settings.md`. Of predictions.json:
    `use_batch_mode` is on, or the platform has written it in another form; the
    submission is not at fault.
    """

    code = "G04"
    remedy = "The documentation's page Phase settings explains every field."

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        self.finding = f"{safe(file)}: {problem}"


class UploadError(HostError):
    """The platform would not take what is to be rehearsed.

    In a rehearsal: the platform would not take this file as a submission, or this
    tarball as its ground truth.
    """

    code = "H06"
    remedy = "Zip the label maps, and rehearse the zip; pack labels with tar -czf."
