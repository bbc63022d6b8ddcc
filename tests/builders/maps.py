"""Pairs of label maps in memory."""

from flare.evaluation.metrics.pairs import MapPair, map_of


def map_pair(reference, prediction, spacing):
    return MapPair(map_of(reference), map_of(prediction), spacing)
