"""Pages of the Library section: Errata, Claims and Published results."""
