"""What platforms do around an evaluation; each platform is a folder.

A new platform is a new folder here, with a command in ``flare/cli/commands/`` for each
thing that people do with it. ``serving/`` is not a platform: it is the queue of
submissions that are measured here, whichever platform they come from. Scoring knows of
no platform but the jobs of algorithms (``flare/evaluation/submission/jobs.py``), which
the container has to read.
"""
