"""Parts of study files that are small enough to train in a test."""

HEAD = """
title = "Tiny"
question = "Does it run?"
source = "none"
claim = "none"
minutes = 1
"""
DIGITS = """
[base.data]
name = "digits"
"""
SMALL = f"""{DIGITS}
[base.model]
hidden = [8]
embedding_dim = 4

[base.batch]
classes = 4
samples = 2
"""
