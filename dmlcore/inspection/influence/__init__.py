"""Which training samples made a failure: what each did, step by step, to the margin of its query."""
