"""The plane of a triplet (scene, field and numbers), used by Fields, Failures and Errata."""
