"""Mathematical analysis of losses: active regions, level sets, equivalence and pair weights."""
