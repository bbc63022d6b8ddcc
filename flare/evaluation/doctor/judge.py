"""Judges repairs by the DSC that they would give, on a sample of voxels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from flare.evaluation.doctor.repair import Placement, Repair
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.metrics.arrays import Floats, Labels

Integers = npt.NDArray[np.integer[Any]]

POINTS = 2000
"""At most this many voxels of each organ are looked at, spread over all of it: the DSC
of a repair is then known to 0.01, whatever the size of the image."""

COARSE = 32
"""Voxels along each axis of the grid on which a shift is searched from nothing."""

INSTEAD = 0.3
"""Another label takes the place of an organ's own label if its DSC is at least this,
and higher than that of the own one by this: organs that touch do not change places."""

MOSTLY = 0.5
"""A label that no organ has, or whose organ has another label now, is taken for the
organ that this share of it lies in."""

TOGETHER = 0.5
"""Once a shift is taken back, the organs' centres lie off by at most this share of it,
at the median."""

CAUSES = {
    Placement.AS_IS: 0,
    Placement.AXES: 1,
    Placement.HEADER: 0,  # the file says so: nothing is guessed
    Placement.FIT: 2,
    Placement.CUT: 1,
}
"""How many causes a placement counts as: the simpler of two explanations is told."""

COST = 0.02
"""Each further cause has to raise the DSC by this."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Voxels of each label of a reference, by which repairs are judged quickly."""

    grid: Grid
    labels: Integers
    """The labels, of shape (labels,)."""
    sizes: Floats
    """The number of voxels of each label."""
    centres: Floats
    """The centre of each label along z, y, x, of shape (labels, 3)."""
    points: Integers
    """The voxels of one label after the other that are looked at, of shape (3, n)."""
    counts: Integers
    """The number of these of each label."""

    def thinned(self, number: int) -> Sample:
        """The same labels with fewer voxels of each."""
        ends = np.cumsum(self.counts)[:-1]
        labels = np.split(self.points, ends, axis=1)
        parts = [points[:, :: max(1, points.shape[1] // number)] for points in labels]
        counts = np.array([part.shape[1] for part in parts])
        return replace(self, points=np.concatenate(parts, axis=1), counts=counts)

    def overlaps(self, labels: Labels, matrix: Floats) -> Floats:
        """Voxels shared with labels of a map, estimated; of shape (labels, 256)."""
        positions = matrix[:, :3].astype(np.float32) @ self.points
        rounding = 0.5 + 1e-4  # in float32, half a voxel may be a little less
        positions += (matrix[:, 3:] + rounding).astype(np.float32)
        z, y, x = np.floor(positions).astype(np.int64)
        depth, height, width = labels.shape
        is_inside = (z >= 0) & (z < depth) & (y >= 0) & (y < height)
        is_inside &= (x >= 0) & (x < width)
        flat_places = (z * height + y) * width + x
        values = labels.ravel().take(flat_places, mode="clip") * is_inside
        rows = np.repeat(np.arange(len(self.counts)), self.counts)
        hits = np.bincount(rows * 256 + values, minlength=256 * len(self.counts))
        shares = hits.reshape(-1, 256) / np.maximum(self.counts, 1)[:, np.newaxis]
        return np.asarray(shares * self.sizes[:, np.newaxis])


def sample_of(
    label_map: LabelMap, labels: Sequence[int], points: int = POINTS
) -> Sample:
    """Look at some voxels of each label, spread over all of it.

    A slice stays in the CPU's cache; all at once, most of the time would go into
    memory.
    """
    sizes = count_voxels(label_map)[list(labels)]
    width = label_map.grid.shape[2]
    sums = np.zeros((len(sizes), 3))
    counts = np.zeros(len(sizes), dtype=int)
    parts = [np.empty((3, 0), dtype=np.int16)]
    for row, label in enumerate(labels):
        step = max(1, int(sizes[row]) // points)
        slices, rows, _ = label_map.box((label,))
        passed = 0
        for z, plane in enumerate(label_map.labels[slices, rows], slices.start):
            places = np.flatnonzero(plane == label) + rows.start * width
            sum_y = (places // width).sum()
            sums[row] += z * len(places), sum_y, places.sum() - sum_y * width
            y, x = np.divmod(places[-passed % step :: step], width)
            parts.append(np.array((np.full_like(y, z), y, x), dtype=np.int16))
            counts[row] += len(y)
            passed += len(places)
    return Sample(
        grid=label_map.grid,
        labels=np.array(labels, dtype=int),
        sizes=sizes,
        centres=sums / np.maximum(sizes, 1)[:, np.newaxis],
        points=np.concatenate(parts, axis=1),
        counts=counts,
    )


def count_voxels(label_map: LabelMap) -> Floats:
    """The number of voxels of each label, of shape (256,)."""
    sizes = np.zeros(256)
    for label in label_map.present:
        z, y, _ = label_map.box((label,))
        for rows in label_map.labels[z, y]:
            sizes[label] += np.count_nonzero(rows == label)
    return sizes


@dataclass(frozen=True, slots=True)
class Judged:
    """A repair, and the DSC that it would give."""

    repair: Repair
    dsc: float
    """The mean over the organs that count and are in either label map."""

    @property
    def worth(self) -> float:
        """The DSC, less a little for each cause that the repair needs."""
        cause = self.repair.cause
        causes = CAUSES[cause.placement] + any(cause.shift) + bool(cause.labels)
        return self.dsc - COST * causes


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Judges repairs of a prediction against a sample of its reference."""

    sample: Sample
    prediction: LabelMap
    sizes: Floats
    """The number of voxels of each label of the prediction, of shape (256,)."""
    members: Floats
    """1 where a part that is scored has a label, else 0; of shape (parts, 256)."""
    is_counted: npt.NDArray[np.bool_]
    """Whether each part counts in the mean."""

    def judged(self, repair: Repair) -> Judged:
        """The DSC of a repair, or of it with other labels if that is worth more."""
        overlaps = self.sample.overlaps(self.prediction.labels, repair.matrix)
        voxel_volume = max(abs(np.linalg.det(repair.matrix[:, :3])), 1e-9)
        sizes = self.sizes / voxel_volume
        best = Judged(repair, self._dsc(repair, overlaps, sizes))
        labels = () if repair.cause.labels else self._better_labels(overlaps, sizes)
        if labels:
            relabelled = repair.relabelled(labels)
            other = Judged(relabelled, self._dsc(relabelled, overlaps, sizes))
            best = max(best, other, key=lambda judged: judged.worth)
        return best

    @property
    def is_resized(self) -> bool:
        """Whether the prediction has another size than its reference."""
        return self.prediction.grid.shape != self.sample.grid.shape

    @property
    def submitted_dsc(self) -> float:
        """The DSC of the prediction as it is; 0 if its size is another."""
        if self.is_resized:
            return 0.0
        overlaps = self.sample.overlaps(self.prediction.labels, Repair().matrix)
        return self._dsc(Repair(), overlaps, self.sizes)

    def _dsc(self, repair: Repair, overlaps: Floats, sizes: Floats) -> float:
        """The DSC of what organs share with the labels of a repair."""
        if repair.cause.labels:
            old, new = np.transpose(repair.cause.labels)
            moved, moved_sizes = overlaps[:, old], sizes[old]
            overlaps, sizes = overlaps.copy(), sizes.copy()
            overlaps[:, old] = sizes[old] = 0
            np.add.at(overlaps.T, new, moved.T)
            np.add.at(sizes, new, moved_sizes)
        in_sample = self.members[:, self.sample.labels]
        shared = (in_sample @ overlaps * self.members).sum(axis=1)
        sums = in_sample @ self.sample.sizes + self.members @ sizes
        dsc = np.minimum(2 * shared / np.maximum(sums, 1), 1)
        counted_dsc = dsc[(sums > 0) & self.is_counted]
        return float(counted_dsc.mean()) if len(counted_dsc) else 1.0

    # --- Labels -------------------------------------------------------------------

    def _better_labels(
        self, overlaps: Floats, sizes: Floats
    ) -> tuple[tuple[int, int], ...]:
        """Labels that fit other organs far better than their own, and these organs."""
        labels = np.flatnonzero(sizes)
        sums = self.sample.sizes[:, np.newaxis] + sizes[labels]
        dsc = 2 * overlaps[:, labels] / np.maximum(sums, 1)
        organs = self.sample.labels.tolist()
        organ_by_label: dict[int, int] = {}
        rows, columns = linear_sum_assignment(dsc, maximize=True)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            label, organ = int(labels[column]), organs[row]
            own_dsc = float(dsc[row][labels == organ].sum())
            if label != organ and dsc[row, column] >= INSTEAD + own_dsc:
                organ_by_label[label] = organ
        self._add_strays(organ_by_label, overlaps, sizes)
        return tuple(organ_by_label.items())

    def _add_strays(
        self, organ_by_label: dict[int, int], overlaps: Floats, sizes: Floats
    ) -> None:
        """Give unknown labels an organ, and those whose organ has another label now.

        A label that was displaced closes the circle: if it were dropped, organs that
        are wrong would vanish, and the score could rise above that of the truth.
        """
        organs = self.sample.labels.tolist()
        for label in np.flatnonzero(sizes).tolist():
            is_displaced = label in organ_by_label.values()
            if label in organ_by_label or (label in organs and not is_displaced):
                continue
            row = int(overlaps[:, label].argmax())
            share = overlaps[row, label] / sizes[label]
            if share >= MOSTLY and organs[row] != label:
                organ_by_label[label] = organs[row]
            elif is_displaced:
                organ = _organ_without_label(label, organ_by_label)
                organ_by_label[label] = organ if organ in organs else 0

    # --- Shifts -------------------------------------------------------------------

    @property
    def coarse_step(self) -> int:
        """The voxels between two places at which a shift is searched from nothing."""
        return max(1, max(self.sample.grid.shape) // COARSE)

    def climbed(self, start: Judged, step: int) -> Judged:
        """The best shift that is reached from a repair by ever smaller steps."""
        best = start
        directions = np.concatenate([np.eye(3), -np.eye(3)]).astype(int)
        while step:
            # Labels are chosen anew at each place.
            unlabelled = best.repair.relabelled(start.repair.cause.labels)
            moves = [unlabelled.shifted(way * step) for way in directions]
            top = max(map(self.judged, moves), key=lambda judged: judged.dsc)
            if top.dsc > best.dsc + 1e-6:
                best = top
            else:
                step //= 2
        return best

    def correlated(self, repair: Repair) -> Repair:
        """The shift by which both foregrounds lie best upon each other.

        By the correlation of coarse label maps, computed in Fourier space.
        """
        reach = np.array(self.sample.grid.shape)
        if repair.cause.placement is Placement.CUT:  # it may be larger than the CT
            sizes = np.array(self.prediction.grid.shape)
            reach = np.maximum(reach, sizes[[*repair.cause.order]])
        strides = np.ceil(reach / COARSE).astype(int)
        coarse_shape = np.ceil(reach / strides).astype(int)
        reference = np.zeros(coarse_shape)
        reference[tuple(self.sample.points // strides[:, np.newaxis])] = 1
        coarse = Repair(repair.matrix * [*strides, 1])
        prediction = coarse.apply(self.prediction, coarse_shape.tolist()) > 0
        padded, axes = (2 * coarse_shape).tolist(), (0, 1, 2)
        spectrum = np.fft.rfftn(prediction, padded, axes)
        spectrum = spectrum * np.conj(np.fft.rfftn(reference, padded, axes))
        correlation = np.fft.irfftn(spectrum, padded, axes)
        peak = np.array(np.unravel_index(correlation.argmax(), correlation.shape))
        # The transform is cyclic: far peaks are shifts to the other side.
        steps = np.where(peak > coarse_shape, peak - padded, peak)
        return repair.shifted((steps * strides).tolist())

    def is_moved_together(self, repair: Repair) -> bool:
        """Whether most organs lie off in the direction of a shift, and as far.

        Organs that lie elsewhere by a vector each are an honest mistake.
        """
        submitted = sample_of(self.prediction, self.prediction.present, 1)
        labels = repair.label_table[submitted.labels]
        sizes, sums = np.zeros(256), np.zeros((256, 3))
        np.add.at(sizes, labels, submitted.sizes)
        np.add.at(sums, labels, submitted.centres * submitted.sizes[:, np.newaxis])
        sizes, sums = sizes[self.sample.labels], sums[self.sample.labels]
        centres = sums / np.maximum(sizes, 1)[:, np.newaxis]
        linear, offset = repair.matrix[:, :3], repair.matrix[:, 3]
        places = np.linalg.solve(linear, (centres - offset).T).T
        offsets_mm = (places - self.sample.centres) * self.sample.grid.spacing
        is_in_both = (self.sample.sizes > 0) & (sizes > 0)
        distances_mm = np.linalg.norm(offsets_mm[is_in_both], axis=1)
        shift_mm = np.multiply(repair.cause.shift, self.sample.grid.spacing)
        limit_mm = TOGETHER * np.linalg.norm(shift_mm)
        return len(distances_mm) > 0 and bool(np.median(distances_mm) < limit_mm)


def _organ_without_label(displaced: int, organ_by_label: Mapping[int, int]) -> int:
    """The organ that has lost its label, at the end of the chain of a displaced one."""
    # Labels that were assigned stand before strays of the same organ.
    chain = {organ: label for label, organ in [*organ_by_label.items()][::-1]}
    organ = displaced
    while organ in chain:
        organ = chain.pop(organ)
    return organ
