"""What a test compares of an error."""

import re


def told(error):
    """Code and file of an error, or of the line that a command wrote of it.

    The file is empty where no file, folder or option is at fault. Whole sentences stand
    in tests/messages.txt alone.

    >>> told("a/case_1.nii.gz: the file is empty. Write it anew. [F09]")
    ('F09', 'a/case_1.nii.gz')
    """
    return all_told(error)[0]


def all_told(error):
    """The same of each file of an error that tells several problems."""
    found = []
    for text, code in re.findall(r"(\S.*?) \[([FGHX]\d\d)\]", str(error).strip()):
        problems = text.removeprefix("Reference labels: ").split("; ")
        files = [problem.partition(": ")[0] for problem in problems if ": " in problem]
        named = [file for file in files if " " not in file]
        found += [(code, file) for file in named or [""]]
    return found
