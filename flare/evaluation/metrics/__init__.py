r"""DSC, NSD and distances of surfaces, exact and fast, on numpy arrays alone.

A metric is a function here, and a record in ``METRICS`` of
``flare/challenge/metrics.py`` that names the function. Only DSC and NSD have none
there: `compare_organ` computes them for every organ, whatever the challenge asks for.
Each file is about one noun of the method. To be read in this order:

- ``plain.py``: which corners of the voxel grid lie on a surface, with a drawing; the
  surfels that sit on them, and which have none of the other mask nearby. It is the
  definition, in NumPy, and counts where no kernel was compiled;
- ``kernel.c``: the same on bits; ``kernel.py`` finds it, and ``packed.py`` calls it: a
  label map is packed into runs while its file is read, and never held otherwise;
- ``tally.py``: a label map, an organ in two, and what either way counts of it;
  ``tolerance.py``: the ball around a corner in which a surfel counts as near;
- ``pairs.py``: the two label maps of a case, and the choice of the way that counts;
- ``surfels.py``: the area of a surfel; ``comparison.py``: all metrics of an organ,
  which is where scoring enters;
- ``distances.py``: how far surfels are from the other mask; they are looked up in the
  ``ring.py`` around each, or are ``far_surfels.py``.

Examples
--------
A reference and a prediction of one slice, whose voxels are cubes of 1 mm:

>>> drawing = '''
...     .##.   ....
...     ####   .###
...     ####   .###
...     .##.   .##.
... '''
>>> import numpy as np
>>> voxels = np.array([list(row) for row in drawing.split()]).reshape(4, 2, 4) == "#"
>>> reference, prediction = voxels[np.newaxis, :, 0], voxels[np.newaxis, :, 1]

All eight voxels of the prediction are among the twelve of the reference, so its DSC is
2 * 8 / (12 + 8):

>>> from flare.evaluation.metrics.pairs import pair_of_masks
>>> pair = pair_of_masks(reference, prediction, spacing=(1.0, 1.0, 1.0))
>>> counts = pair.tally(tolerance=0.5)
>>> counts.voxels, counts.voxels.dsc
(Voxels(reference=12, prediction=8, shared=8), 0.8)

Each corner of a drawn voxel is a surfel before and behind the slice: 2 * 21 of the
reference, 2 * 15 of the prediction. Of those, 2 * 6 have no surfel of the other mask
within 0.5 mm, and the NSD is the share of the others, weighted by their areas:

>>> int(counts.surfels.sum()), int(counts.beyond.sum())
(72, 12)
>>> from flare.evaluation.metrics.comparison import surface_dice
>>> round(surface_dice(counts, pair.spacing), 4)
0.9035
"""
