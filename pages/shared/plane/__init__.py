"""The plane of a triplet: scene, field, numbers; of the fields page, of a failure and of an erratum."""
