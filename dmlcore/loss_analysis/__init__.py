"""Mathematical analysis of losses: active regions, level sets, equality up to a factor, and pair weights."""
