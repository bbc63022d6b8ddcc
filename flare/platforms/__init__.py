"""What platforms do around an evaluation; each platform is a folder.

A new platform is a new folder here, and a word of ``--platform`` for each thing that
people do with it; the files beside the folders have what platforms share. ``serving/``
is not a platform: it is the queue of submissions that are measured here, whichever
platform they come from. Scoring knows of no platform but the jobs of algorithms
(``flare/evaluation/submission/jobs.py``), which the container has to read.
"""
