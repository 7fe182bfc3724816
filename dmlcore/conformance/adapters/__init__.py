"""The libraries: for each case the call that a user of the library would make. They are imported when they are run."""
