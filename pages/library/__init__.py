"""Pages of the Library section: Errata and Published results."""
