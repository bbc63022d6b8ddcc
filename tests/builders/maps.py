"""Pairs of label maps in memory."""

from flare.evaluation.metrics.pairs import MapPair


def map_pair(reference, prediction, spacing):
    return MapPair(reference=reference, prediction=prediction, spacing=spacing)
