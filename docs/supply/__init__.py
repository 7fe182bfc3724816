"""Dependencies of the project: lock files, licences of the packages, and the bill of materials."""
