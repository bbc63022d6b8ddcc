"""Pairs of label maps in memory."""

from flare.evaluation.metrics.pairs import MapPair, map_of


def map_pair(reference, prediction, spacing):
    maps = map_of(reference), map_of(prediction)
    return MapPair(reference=maps[0], prediction=maps[1], spacing=spacing)
