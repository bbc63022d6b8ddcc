"""Label maps of a few cases with their metrics.json, and the pages of these cases."""

from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np

import flare
from flare.challenge.reading import read_challenge
from flare.evaluation.scoring.case import score_labels
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair
from flare.reports.cases.findings import find_mending, look_at
from flare.reports.cases.options import CaseOptions
from flare.reports.cases.pages import case_pages
from flare.results.metrics_reading import read_evaluation
from tests.builders import AFFINE, SPACING, write_nifti
from tests.builders.pages import write_report


@dataclass(frozen=True)
class Evaluated:
    """An evaluation, and what it was made from."""

    metrics: Path
    references: Path
    predictions: Path
    pages: Path

    def options(self, **more):
        """Of the pages of its cases."""
        return CaseOptions(
            ground_truth=self.references, predictions=self.predictions, **more
        )

    def write(self, *, on_drawn=None, **more):
        write_report(
            [self.metrics],
            self.pages,
            is_organiser=True,
            cases=self.options(**more),
            on_drawn=on_drawn,
        )
        return self.pages / "cases"

    def drawn(self, **more):
        """The pages of all cases as content, by case, and the index."""
        found, options = read_evaluation(self.metrics), self.options(worst=0, **more)
        pages = case_pages(self.metrics, found, options)
        return {Path(own.file).stem: own.page for own in pages}


def evaluated(folder, cases, *, affine=AFFINE, spacing=SPACING, **options):
    """Evaluate cases, each a reference and a prediction, which may be None."""
    references, predictions = folder / "references", folder / "predictions"
    predictions.mkdir(parents=True, exist_ok=True)
    for case, (reference, prediction) in cases.items():
        header = {"affine": affine, "spacing": spacing}
        write_nifti(references / f"{case}.nii.gz", reference, **header)
        if prediction is not None:
            write_nifti(predictions / f"{case}.nii.gz", prediction, **header)
    results = flare.evaluate(predictions, references, **options)
    metrics = flare.write_metrics(results, folder / "results")
    return Evaluated(metrics, references, predictions, folder / "pages")


def write_teams_on_cases(folder, references, teams, **options):
    """Results of teams as `flare measure` keeps them; the folders of both.

    `teams` has the predictions of each team, by case; a case may have none.
    """
    for case, labels in references.items():
        write_nifti(folder / "labels" / f"{case}.nii.gz", labels)
    for team, predictions in teams.items():
        own = folder / "results" / team
        for case, labels in predictions.items():
            write_nifti(own / "predictions" / f"{case}.nii.gz", labels)
        results = flare.evaluate(
            own / "predictions", folder / "labels", on_bad_case="worst", **options
        )
        flare.write_metrics(results, own)
    return folder / "results", folder / "labels"


def found_of(folder, maps, *, challenge="flare21", affine=AFFINE, spacing=SPACING):
    """What is found of two label maps; the means of the case are made up."""
    rules = read_challenge(challenge)
    read, files = [], []
    for name, labels in zip(("reference", "prediction"), maps, strict=True):
        path = write_nifti(
            folder / f"{name}.nii.gz", labels, affine=affine, spacing=spacing
        )
        file = LabelMapFile(case="case", path=path, name=path.name)
        read.append(file.read_labels(rules.labels))
        files.append(file)
    organs = score_labels(*read, rules)
    scores = {
        f"{name}_{organ.organ}": value
        for organ in organs
        for name, value in organ.by_metric.items()
    }
    for name in organs[0].by_metric:
        scores[name] = sum(organ.by_metric[name] for organ in organs) / len(organs)
    pair = CasePair(case="case", reference=files[0], prediction=files[1])
    return look_at(*read, rules, scores, find_mending(pair, rules, scores))


def rows_by_name(table):
    """The rows of a table, each by its heads, by their names."""
    return {row[0].text: dict(zip(table.heads, row, strict=True)) for row in table.rows}


def reoriented(maps, axes):
    """Maps on the axes of `SLOT` as a file with others has them, and its header."""
    ways = map(nib.orientations.axcodes2ornt, ("LPS", axes))
    turn = nib.orientations.ornt_transform(*ways)
    images = (nib.Nifti1Image(labels.T, SLOT["affine"]) for labels in maps)
    turned = [image.as_reoriented(turn) for image in images]
    affine = turned[0].affine
    spacing = tuple(np.abs(affine[:3, :3]).max(axis=0)[::-1])
    arrays = [np.asarray(image.dataobj).T for image in turned]
    return arrays, {"affine": affine, "spacing": spacing}


SLOT = {"affine": np.diag([-1.0, -1.0, 2.0, 1.0]), "spacing": (2.0, 1.0, 1.0)}
"""The header of the files of the next case."""


def slot_and_stray():
    """A liver whose prediction has a slot in slice 4, and a stray of two voxels.

    Seen from above, one row of slice 4, and one of slice 12::

        reference   ..xxxxxx....      ............
        prediction  ..xxx.......      ..........xx
    """
    reference = np.zeros((16, 12, 12), dtype=np.uint8)
    reference[2:6, 2:8, 2:8] = 1
    prediction = reference.copy()
    prediction[4, 2:8, 5:8] = 0
    prediction[12, 10, 10:12] = 1
    return reference, prediction


def missed_and_shifted():
    """A lesion of 294 voxels and one of 64, which one prediction misses.

    It has a DSC of 0.902 and a lesion-wise one of 0.500; the other prediction, in which
    the large one is a column farther, 0.883 and 0.929.
    """
    reference = np.zeros((10, 16, 30), dtype=np.uint8)
    reference[2:8, 2:9, 2:9] = reference[2:6, 11:15, 22:26] = 3
    missed, shifted = reference.copy(), reference.copy()
    missed[2:6, 11:15, 22:26] = shifted[2:8, 2:9, 2] = 0
    shifted[2:8, 2:9, 9] = 3
    return reference, missed, shifted


def two_boxes(*labels, mirrored=False):
    """Two boxes of two labels, or those that are predicted there."""
    maps = np.zeros((2, 6, 8, 20), dtype=np.uint8)
    for own, pair in zip(maps, labels, strict=True):
        own[1:4, 2:6, 1:5], own[2:5, 3:6, 12:15] = pair
    if mirrored:
        maps[1] = maps[1, :, :, ::-1]
    return maps
