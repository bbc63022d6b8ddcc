"""The volume difference: how much larger the prediction is than the reference."""

from __future__ import annotations

from flare.evaluation.metrics.comparison import Agreement


def volume_difference(agreement: Agreement) -> float:
    """The volume that a prediction has too much, relative to the reference.

    Where there is no reference to relate it to, a prediction is 1 too large.
    """
    reference, prediction = agreement.reference_voxels, agreement.prediction_voxels
    if not reference:
        return float(prediction > 0)
    return (prediction - reference) / reference
